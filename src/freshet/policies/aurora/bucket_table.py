"""Buckets of slope and slack: which latencies of a curve fall into which bucket."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.model import Curve

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Grid(NamedTuple):
    """g x s buckets over the ranges of slope and slack (CAR §4.4.2, Fig. 4.7).

    Buckets are numbered in the order of the traversal: steepest slope first, then least slack. Latencies past the last
    critical point have a bucket of their own behind all others, unless there is only one bucket.
    """

    slopes: int
    slacks: int
    slope_width: float
    slack_width: float

    @classmethod
    def over(cls, curves: Sequence[Curve], slopes: int, slacks: int) -> Grid:
        """The grid that covers all slopes and slacks of some curves evenly."""
        steepest = max((slope for curve in curves for _, slope in curve.pieces()), default=0.0)
        longest = max((curve.critical[-1] for curve in curves if curve.critical), default=0.0)
        return cls(slopes, slacks, steepest / slopes or 1.0, longest / slacks or 1.0)

    def slope_bucket(self, slope: float) -> int:
        """The bucket of a slope; 0 is the flattest."""
        return min(int(slope / self.slope_width * (1.0 + 1e-12)), self.slopes - 1)

    def slack_bucket(self, slack: float) -> int:
        """The bucket of a slack; 0 is the shortest."""
        return min(int(slack / self.slack_width * (1.0 + 1e-12)), self.slacks - 1)

    def bucket(self, slope_bucket: int, slack_bucket: int) -> int:
        """The number of a bucket, which is its place in the traversal."""
        return (self.slopes - 1 - slope_bucket) * self.slacks + slack_bucket

    def least(self, bucket: int) -> dict[str, float]:
        """The least slope and slack of a bucket.

        >>> Grid(4, 5, 1.0, 0.1).least(6)
        {'slope': 2.0, 'slack_s': 0.1}
        """
        row, slack_bucket = divmod(bucket, self.slacks)
        return {"slope": (self.slopes - 1 - row) * self.slope_width, "slack_s": slack_bucket * self.slack_width}

    @property
    def late(self) -> int:
        """The bucket of latencies past the last critical point."""
        return 0 if self.slopes * self.slacks == 1 else self.slopes * self.slacks

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return self.late + 1


class Ranges(NamedTuple):
    """The gradient-latency and slack-latency graphs of a curve in one: up to latency ``ends[i]`` the bucket is
    ``buckets[i]``; after the last end it is the last bucket."""

    ends: list[float]
    buckets: list[int]

    def look_up(self, latency: float) -> tuple[int, float]:
        """The bucket of a latency, and the latency at which that bucket ends."""
        place = bisect_left(self.ends, latency)
        return self.buckets[place], self.ends[place] if place < len(self.ends) else math.inf


def ranges_of(curve: Curve, grid: Grid) -> Ranges:
    """The latencies at which a curve moves from one bucket to the next.

    >>> curve = Curve([(0, 5), (1, 5), (3, 3), (4, 0)])
    >>> ranges_of(curve, Grid(4, 5, 1.0, 1.0)).ends
    [1.0, 2.0, 3.0, 4.0]
    """
    ends: list[float] = []
    buckets: list[int] = []
    begin = 0.0
    for end, slope in curve.pieces():
        row = grid.slope_bucket(slope)
        for slack_bucket in range(grid.slack_bucket(end - begin), -1, -1):
            until = end - slack_bucket * grid.slack_width
            if until > begin:
                _extend(ends, buckets, until, grid.bucket(row, slack_bucket))
        begin = end
    buckets.append(grid.late)
    return Ranges(ends, buckets)


def _extend(ends: list[float], buckets: list[int], end: float, bucket: int) -> None:
    if buckets and buckets[-1] == bucket:
        ends[-1] = end
    else:
        ends.append(end)
        buckets.append(bucket)


class BucketTable:
    """The buckets of many latencies at once, by the number of the curve.

    >>> table = BucketTable([ranges_of(Curve.deadline(2.0), Grid(1, 2, 1.0, 1.0))])
    >>> buckets, ends = table.look_up(np.array([0, 0, 0]), np.array([0.5, 1.5, 2.5]))
    >>> buckets.tolist(), ends.tolist()
    ([1, 0, 2], [1.0, 2.0, inf])
    """

    def __init__(self, ranges: Sequence[Ranges]) -> None:
        # All curves lie one after the other on one axis, so that one search finds all latencies.
        self._span = 2.0 * max((end for each in ranges for end in each.ends), default=1.0)
        beyond = 0.75 * self._span
        shifted = enumerate((*each.ends, beyond) for each in ranges)
        self._places = np.array([end + self._span * number for number, ends in shifted for end in ends])
        self._ends = np.array([end for each in ranges for end in (*each.ends, math.inf)])
        self._buckets = np.array([bucket for each in ranges for bucket in each.buckets], dtype=np.int64)

    def look_up(self, numbers: Numbers, latencies: Floats) -> tuple[Numbers, Floats]:
        """The bucket of each latency, and the latency at which that bucket ends."""
        within = np.minimum(np.maximum(latencies, 0.0), 0.75 * self._span)
        found = np.searchsorted(self._places, within + self._span * numbers, side="left")
        return self._buckets[found], self._ends[found]
