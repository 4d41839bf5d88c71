"""The union of intervals of time, in bounded memory."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]

_KNOTS = 64
_SMALL = 16  # Below this, Python floats are quicker than the fixed price of NumPy calls.


class IntervalUnion:
    """Total length of a union of closed intervals, given in any order.

    Intervals that come mostly in the order of their ends cost O(1). The latest ``limit`` disjoint intervals are
    kept, and everything that touches them is exact. Older ones are folded into a curve of covered time. An
    interval that reaches back behind :attr:`floor` into the curve is placed by interpolation, and clears
    :attr:`exact`.

    >>> union = IntervalUnion()
    >>> union.add(1.0, 3.0)
    >>> union.add(5.0, 6.0)
    >>> union.add(2.0, 4.0)
    >>> union.length, union.within(3.5, 5.5)
    (4.0, 1.0)
    """

    __slots__ = ("_curve", "_ends", "_starts", "exact", "floor", "length", "limit")

    def __init__(self, limit: int = 1024) -> None:
        self.limit = limit
        self.length = 0.0
        self.exact = True
        self.floor = -math.inf
        self._starts = array("d")
        self._ends = array("d")
        # (time, covered seconds before it); its last point is at the floor.
        self._curve: list[tuple[float, float]] = []

    def __len__(self) -> int:
        """Number of disjoint intervals that are kept one by one."""
        return len(self._starts)

    def add(self, start: float, end: float) -> None:
        """Adds [start, end]; an empty or reversed interval adds nothing."""
        if not start < end:
            return
        ends = self._ends
        if not ends or start > ends[-1]:
            self.length += end - start
            self._starts.append(start)
            ends.append(end)
            if len(ends) > self.limit:
                self._fold()
        elif start >= self._starts[-1]:
            if end > ends[-1]:
                self.length += end - ends[-1]
                ends[-1] = end
        else:
            self._splice(np.array([start]), np.array([end]))

    def add_many(self, starts: Times, ends: Times) -> None:
        """Adds the intervals [starts[i], ends[i]]."""
        if len(starts) > _SMALL:
            some = starts < ends
            starts, ends = merged(starts[some], ends[some])
        if len(starts) > _SMALL:
            self._splice(starts, ends)
            return
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            self.add(start, end)

    def within(self, first: float, last: float) -> float:
        """Length of the union's part in [first, last]."""
        if not first < last:
            return 0.0
        covered = 0.0
        if first < self.floor:
            covered = self._covered_before(min(last, self.floor)) - self._covered_before(first)
        for index in range(bisect_right(self._ends, first), len(self._ends)):
            start = self._starts[index]
            if start >= last:
                break
            covered += min(self._ends[index], last) - max(start, first)
        return covered

    def _splice(self, starts: Times, ends: Times) -> None:
        """Adds disjoint intervals in order."""
        if starts[0] < self.floor:
            starts, ends = self._into_curve(starts, ends)
            if not len(starts):
                return
        place = bisect_left(self._ends, float(starts[0]))
        old_starts, old_ends = np.array(self._starts[place:]), np.array(self._ends[place:])
        if len(old_starts):
            starts, ends = merged(np.concatenate((old_starts, starts)), np.concatenate((old_ends, ends)))
        self.length += float((ends - starts).sum() - (old_ends - old_starts).sum())
        self._starts[place:] = array("d", starts.tobytes())
        self._ends[place:] = array("d", ends.tobytes())
        if len(self._ends) > self.limit:
            self._fold()

    def _fold(self) -> None:
        """Turns the older half (and whatever is above the limit) into a point of the curve."""
        keep = self.limit // 2
        if not self._curve:
            self._curve.append((self._starts[0], 0.0))
        self.floor = self._ends[-keep - 1]
        del self._starts[:-keep], self._ends[:-keep]
        kept = sum(end - start for start, end in zip(self._starts, self._ends, strict=True))
        self._curve.append((self.floor, self.length - kept))
        if len(self._curve) > _KNOTS:
            del self._curve[1:-1:2]

    def _covered_before(self, time: float) -> float:
        """Covered seconds before a time that is not after the floor."""
        place = bisect_left(self._curve, time, key=lambda point: point[0])
        if place == 0:
            return 0.0
        (time_0, covered_0), (time_1, covered_1) = self._curve[place - 1], self._curve[place]
        return covered_0 + (covered_1 - covered_0) * (time - time_0) / (time_1 - time_0)

    def _into_curve(self, starts: Times, ends: Times) -> tuple[Times, Times]:
        """Puts the parts before the floor into the curve; returns the parts after it."""
        self.exact = False
        before = starts < self.floor
        for start, end in zip(starts[before].tolist(), ends[before].tolist(), strict=True):
            self._raise_curve(start, min(end, self.floor))
        after = ends > self.floor
        return np.maximum(starts[after], self.floor), ends[after]

    def _raise_curve(self, start: float, end: float) -> None:
        at_start, at_end = self._covered_before(start), self._covered_before(end)
        gain = (end - start) - (at_end - at_start)
        curve = [point for point in self._curve if point[0] < start]
        curve += [(start, at_start), (end, at_end + gain)]
        curve += [(time, covered + gain) for time, covered in self._curve if time > end]
        if len(curve) > _KNOTS:
            del curve[1:-1:2]
        self._curve = curve
        self.length += gain


def merged(starts: Times, ends: Times) -> tuple[Times, Times]:
    """The disjoint intervals, in order, of the union of intervals.

    >>> merged(np.array([4.0, 1.0, 2.0]), np.array([5.0, 3.0, 3.5]))
    (array([1., 4.]), array([3.5, 5. ]))
    """
    if not len(starts):
        return starts, ends
    if not (starts[1:] >= starts[:-1]).all():
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    begins = np.flatnonzero(np.concatenate(([True], starts[1:] > reach[:-1])))
    return starts[begins], reach[np.concatenate((begins[1:] - 1, [len(starts) - 1]))]
