"""Resources that change by Poisson processes, and how fresh the copies of those who poll them are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Served:
    """A request that was answered.

    Args:
        time: When, in seconds of the wall clock.
        reader: Who asked.
        element: Number of the resource.
        version: Its version.
        sent: Whether the content was sent; False: the reader had this version already.
    """

    time: float
    reader: str
    element: int
    version: int
    sent: bool


class Changing:
    """Resources whose versions count their changes. All changes are drawn in advance, so that serving costs nothing.

    Args:
        rates: Changes a second of each resource.
        began: When version 0 came, in seconds of the wall clock.
        seconds: For how long they change.
        seed: Of the processes.

    >>> changing = Changing([1.0, 0.0], began=100.0, seconds=10.0, seed=1)
    >>> changing.version(0, 100.0), changing.version(0, 200.0) > 3, changing.version(1, 200.0)
    (0, True, 0)
    """

    def __init__(self, rates: Sequence[float] | Floats, began: float, seconds: float, seed: int) -> None:
        generator = np.random.default_rng(seed)
        counts = generator.poisson(np.asarray(rates) * seconds)
        self.times = [np.sort(generator.random(count)) * seconds + began for count in counts]

    def version(self, element: int, now: float) -> int:
        """The version of a resource at a time."""
        return int(np.searchsorted(self.times[element], now, side="right"))

    def freshness(self, polls: Sequence[Served], since: float, until: float) -> Floats:
        """The share of a span in which each resource had the version that its last poll met (CAR §2.2, Definition 1).

        >>> changing = Changing([1.0], 0.0, 10.0, seed=1)
        >>> changing.times[0] = np.array([2.0, 6.0])
        >>> changing.freshness([Served(1.0, "a", 0, 0, True), Served(5.0, "a", 0, 1, True)], 0.0, 10.0)
        array([0.2])
        """
        times = [list[float]() for _ in self.times]
        for poll in sorted(polls, key=lambda poll: poll.time):
            times[poll.element].append(poll.time)
        shares = [_fresh(changes, polled, since, until) for changes, polled in zip(self.times, times, strict=True)]
        return np.array(shares) / (until - since)


def _fresh(changes: Floats, polls: Sequence[float], since: float, until: float) -> float:
    """Seconds of a span from each poll to the next change, or to the next poll if that comes first."""
    if not polls:
        return 0.0
    begins = np.asarray(polls)
    after = np.append(changes, np.inf)[np.searchsorted(changes, begins, side="right")]
    ends = np.minimum(np.minimum(after, np.append(begins[1:], np.inf)), until)
    return float(np.maximum(0.0, ends - np.maximum(begins, since)).sum())
