"""Response times of the last seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.quality.histogram import Histogram

HALF: Final = 5.0
"""Recent response times look back for at least this many seconds, and at most for twice as many."""
_BUCKETS: Final = Histogram()


@dataclass(frozen=True, slots=True)
class ResponseCounts:
    """What a meter of response times has seen: how many, their sum, and the buckets that are not empty."""

    count: int
    sum: float
    buckets: NDArray[np.intp]
    counts: NDArray[np.float64]

    @staticmethod
    def nothing() -> ResponseCounts:
        """What a meter has seen before the first response time."""
        return ResponseCounts(0, 0.0, np.empty(0, np.intp), np.empty(0))

    @staticmethod
    def together(parts: Iterable[ResponseCounts]) -> ResponseCounts:
        """What several meters have seen together."""
        each = [part for part in parts if part.count]
        if not each:
            return ResponseCounts.nothing()
        weights = np.concatenate([part.counts for part in each])
        counts = np.bincount(np.concatenate([part.buckets for part in each]), weights).astype(np.float64)
        buckets = np.flatnonzero(counts)
        return ResponseCounts(
            sum(part.count for part in each), sum(part.sum for part in each), buckets, counts[buckets]
        )

    def since(self, earlier: ResponseCounts) -> ResponseCounts:
        """What came after an earlier look at the same meter."""
        counts = self.counts.copy()
        counts[np.searchsorted(self.buckets, earlier.buckets)] -= earlier.counts
        return ResponseCounts(self.count - earlier.count, self.sum - earlier.sum, self.buckets, counts)

    @property
    def mean(self) -> float | None:
        """Mean response time; None if there was none."""
        return self.sum / self.count if self.count else None

    @property
    def p95(self) -> float | None:
        """The 95th percentile; None if there was none."""
        if not self.count:
            return None
        reached = np.cumsum(self.counts)
        place = min(int(np.searchsorted(reached, 0.95 * reached[-1])), len(reached) - 1)
        return _BUCKETS.value(int(self.buckets[place]))


class RecentResponse:
    """What a :class:`~freshet.quality.response.ResponseMeter` has seen in the last 5 to 10 seconds.

    It remembers what the meter had seen at two earlier times, and costs next to nothing per train.

    Args:
        look: Returns what the meter has seen so far.
        start: When the meter began.

    >>> from freshet.quality.response import ResponseMeter
    >>> meter = ResponseMeter()
    >>> recent = RecentResponse(meter.seen, start=0.0)
    >>> recent.turn(1.0); meter.add_many([9.0])
    >>> recent.turn(20.0); meter.add_many([0.5, 1.5])
    >>> meter.times().count, recent.seen(21.0).count, recent.seen(21.0).mean
    (3, 2, 1.0)
    >>> recent.seen(60.0).count
    0
    """

    __slots__ = ("_due", "_look", "_newer", "_older")

    def __init__(self, look: Callable[[], ResponseCounts], start: float) -> None:
        self._look = look
        self._older = self._newer = ResponseCounts.nothing()
        self._due = start + HALF

    def turn(self, now: float) -> None:
        """Notes that time has passed; call it before the meter takes in what departs now."""
        if now < self._due:
            return
        halves = (now - self._due) // HALF
        seen = self._look()
        # Nothing departed since the last multiple of the half; otherwise this would have been called before.
        self._older = seen if halves else self._newer
        self._newer = seen
        self._due += (halves + 1.0) * HALF

    def seen(self, now: float) -> ResponseCounts:
        """What departed recently."""
        self.turn(now)
        return self._look().since(self._older)
