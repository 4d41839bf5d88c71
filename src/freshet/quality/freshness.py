"""Freshness of an output: the share of time in which no matching tuple waits (FAS §3)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from freshet.quality.intervals import IntervalUnion


class FreshnessMeter:
    """F(D) of one output from ``start`` on (FAS §3.1, Eq. 1-2).

    The output is stale while at least one of its future tuples waits or is being processed. So its staleness is the
    union of the intervals [arrival, departure] of the matching tuples. This is exact whatever the order of the calls;
    :class:`~freshet.quality.intervals.IntervalUnion` has the one exception, and :attr:`exact` reports it.

    Args:
        start: Beginning of the observation, T_x; staleness before it does not count.

    >>> meter = FreshnessMeter(start=0.0)
    >>> meter.stale(2.0, 3.0)
    >>> meter.stale(6.0, 7.0)
    >>> meter.freshness(now=10.0)
    0.8

    A query that is stuck grows stale although nothing departs:

    >>> meter.freshness(now=20.0, waiting_since=10.0), meter.freshness(20.0, 10.0, probability=0.5)
    (0.4, 0.65)
    """

    __slots__ = ("_union", "start")

    def __init__(self, start: float) -> None:
        self.start = start
        self._union = IntervalUnion()

    @property
    def exact(self) -> bool:
        """False if an interval was too old to be placed exactly."""
        return self._union.exact

    def stale(self, first_arrival: float, departure: float) -> None:
        """Records a train that departed as a whole; its earliest matching tuple arrived at ``first_arrival``."""
        self._union.add(first_arrival if first_arrival > self.start else self.start, departure)

    def stale_many(self, arrivals: ArrayLike, departures: ArrayLike) -> None:
        """Records matching tuples that departed, each at its own time.

        >>> meter = FreshnessMeter(start=0.0)
        >>> meter.stale_many([1.0, 2.0, 7.0], [2.5, 3.0, 8.0])
        >>> meter.stale_seconds(now=10.0)
        3.0
        """
        first = np.maximum(np.asarray(arrivals, dtype=np.float64), self.start)
        self._union.add_many(first, np.asarray(departures, dtype=np.float64))

    def stale_seconds(self, now: float, waiting_since: float | None = None, probability: float = 1.0) -> float:
        """Seconds of staleness up to ``now``.

        Args:
            now: End of the observation, T_y.
            waiting_since: Arrival of the oldest tuple that has not departed, if there is one.
            probability: Probability that at least one waiting tuple matches (:func:`staleness_probability`). The time
                since ``waiting_since`` that is not yet stale counts by it: an expectation, not yet a fact.
        """
        seconds = self._union.length - self._union.within(now, math.inf)
        if waiting_since is not None and waiting_since < now:
            since = max(waiting_since, self.start)
            seconds += probability * (now - since - self._union.within(since, now))
        return seconds

    def freshness(self, now: float, waiting_since: float | None = None, probability: float = 1.0) -> float:
        """F(D) over [start, now]; arguments as for :meth:`stale_seconds`. An empty period counts as fresh."""
        if now <= self.start:
            return 1.0
        stale = self.stale_seconds(now, waiting_since, probability) / (now - self.start)
        return min(1.0, max(0.0, 1.0 - stale))


def staleness_probability(selectivity: float, waiting: int) -> float:
    """Probability that at least one of the waiting tuples matches: P = 1 - (1 - S)^N (FAS §4.2).

    >>> staleness_probability(0.5, 2)
    0.75
    >>> staleness_probability(1e-12, 10**12)
    0.632...
    """
    if waiting <= 0 or selectivity <= 0.0:
        return 0.0
    if selectivity >= 1.0:
        return 1.0
    return -math.expm1(waiting * math.log1p(-selectivity))


def mean_freshness(freshness: Iterable[float], weights: Iterable[float] | None = None) -> float | None:
    """Freshness over all outputs: the plain mean (FAS §3.2, Eq. 3), or weighted by importance (FAS §4.4).

    >>> mean_freshness([0.5, 1.0]), mean_freshness([0.5, 1.0], [1.0, 0.25]), mean_freshness([])
    (0.75, 0.6, None)
    """
    values = list(freshness)
    shares = [1.0] * len(values) if weights is None else list(weights)
    total = math.fsum(shares)
    if not total:
        return None
    return math.fsum(share * value for share, value in zip(shares, values, strict=True)) / total
