"""Timeliness: which share of the answers that were due came before their tuples expired (WU §4.3.1)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

_PARTS: Final = 64
"""Number of parts of an observation period: the oldest is forgotten as a whole."""


def utility(departed: float, expiry: float) -> int:
    """What an answer is worth: 1 if it was produced no later than the first of its tuples expires (WU Eq. 4.1).

    >>> utility(4.0, 5.0), utility(5.0, 5.0), utility(6.0, 5.0)
    (1, 1, 0)
    """
    return int(departed <= expiry)


@dataclass(frozen=True, slots=True)
class TimelyCounts:
    """Answers of one query in an observation period.

    Args:
        due: How many were due: those that were produced, and those that were left out.
        on_time: How many of them were produced in time.
    """

    due: int = 0
    on_time: int = 0

    @property
    def share(self) -> float | None:
        """The utility of the query (WU Eq. 4.2); None if nothing was due."""
        return self.on_time / self.due if self.due else None


def counts_of(expiries: ArrayLike, departures: ArrayLike, discarded: int = 0) -> TimelyCounts:
    """Counts answers by when they left and when they expired. What was discarded is late: otherwise the score would
    rise by discarding.

    >>> counts_of([5.0, 5.0, 9.0], [4.0, 6.0, 8.0], discarded=1)
    TimelyCounts(due=4, on_time=2)
    """
    due, left = np.asarray(expiries, dtype=np.float64), np.asarray(departures, dtype=np.float64)
    return TimelyCounts(len(due) + discarded, int(np.count_nonzero(left <= due)))


def score(counts: Mapping[str, TimelyCounts], weights: Mapping[str, float]) -> float | None:
    """The utility over all queries (WU Eq. 4.3) over the sum of their weights, so that it is 1 if all were in time. A
    query of which nothing was due does not count; None if that is so of all.

    An answer of query j that is in time adds w_j / n_j, where n_j are the answers of j that were due.

    >>> score({"a": TimelyCounts(4, 2), "b": TimelyCounts(10, 10), "idle": TimelyCounts()}, {"a": 3.0, "b": 1.0})
    0.625
    """
    shares = {name: each.share for name, each in counts.items()}
    known = {name: share for name, share in shares.items() if share is not None}
    total = sum(weights.get(name, 1.0) for name in known)
    return sum(weights.get(name, 1.0) * share for name, share in known.items()) / total if total else None


def competitive_bound(spread: float) -> float:
    """The share of what a clairvoyant schedule earns that no online scheduler can promise to exceed (Baruah et al., WU
    §4.7): 1 / (1 + sqrt(k))^2, where k is the highest density of profit over the lowest.

    It is about the worst case of an overload. A score may well be higher; it is shown beside it.

    >>> competitive_bound(1.0), round(competitive_bound(100.0), 4)
    (0.25, 0.0083)
    """
    return 1.0 / (1.0 + math.sqrt(spread)) ** 2


class TimelinessMeter:
    """Counts the answers of a query over a sliding observation period.

    Args:
        period: Its length in seconds; the oldest 64th of it is forgotten at once.

    >>> meter = TimelinessMeter(period=10.0)
    >>> meter.answered([5.0, 5.0], [4.0, 6.0]); meter.discarded(2, at=6.0)
    >>> meter.counts(now=7.0), meter.counts(now=15.0).due, meter.counts(now=30.0).due
    (TimelyCounts(due=4, on_time=1), 3, 0)
    """

    __slots__ = ("_due", "_in_time", "_part", "_parts")

    def __init__(self, period: float) -> None:
        self._part = period / _PARTS
        self._parts: deque[list[int]] = deque()
        """Number of the part, answers that were due in it, and those of them that were in time."""
        self._due = self._in_time = 0

    def answered(self, expiries: ArrayLike, departures: ArrayLike) -> None:
        """Answers were produced, no earlier than those told of before."""
        left = np.asarray(departures, dtype=np.float64)
        in_time = left <= np.asarray(expiries, dtype=np.float64)
        numbers = np.floor(left / self._part).astype(np.int64)
        for number in np.unique(numbers).tolist():
            here = numbers == number
            self._add(number, int(np.count_nonzero(here)), int(np.count_nonzero(in_time[here])))

    def discarded(self, count: int, at: float) -> None:
        """Answers were left out."""
        self._add(int(at // self._part), count, 0)

    def _add(self, number: int, due: int, in_time: int) -> None:
        if self._parts and number <= self._parts[-1][0]:
            self._parts[-1][1] += due
            self._parts[-1][2] += in_time
        else:
            self._parts.append([number, due, in_time])
        self._due += due
        self._in_time += in_time

    def counts(self, now: float) -> TimelyCounts:
        """What was due in the period that ends now."""
        oldest = now / self._part - _PARTS
        while self._parts and self._parts[0][0] + 1 <= oldest:
            _, due, in_time = self._parts.popleft()
            self._due -= due
            self._in_time -= in_time
        return TimelyCounts(self._due, self._in_time)
