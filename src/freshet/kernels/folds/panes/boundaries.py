"""Sorted panes: the boundaries at which their groups have an answer, and the panes that make it up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.arrays import Ints, repeat
from freshet.kernels.folds.sorting import Runs, previous, running_maximum, sort_rows
from freshet.kernels.folds.windows import Windows


class Places(NamedTuple):
    """Groups at boundaries, each at most once, sorted by group and boundary."""

    codes: Ints
    boundaries: Ints


class SortedPanes:
    """Panes by group and first boundary.

    Args:
        codes: Number of each pane's group.
        size: Upper bound of these numbers.
        first: First boundary at which each pane counts.
        last: Last one.
    """

    def __init__(self, codes: Ints, size: int, first: Ints, last: Ints) -> None:
        self.order = _order(codes, size, first, last)
        self.size = size
        self.codes, self.first = codes[self.order], first[self.order]
        self.last = last[self.order]
        # Panes have one length, or two if the slide does not divide the window. So they are also sorted by their ends.
        self._ends = running_maximum(self.codes, size, self.last)

    def places(self, after: int | None, until: int | None, which: Mask | None = None) -> Places:
        """The boundaries in ``(after, until]`` at which some of the panes count (None: without limit)."""
        chosen = slice(None) if which is None else np.flatnonzero(which[self.order])
        codes, first, last = self.codes[chosen], self.first[chosen], self.last[chosen]
        ends = self._ends if which is None else running_maximum(codes, self.size, last)
        # Boundaries that an earlier pane of the group covers are not counted again.
        first = np.maximum(first, previous(codes, ends, first - 1) + 1)
        first = first if after is None else np.maximum(first, after + 1)
        last = last if until is None else np.minimum(last, until)
        counts = np.maximum(last - first + 1, 0)
        rows = repeat(counts)
        steps = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return Places(codes[rows], first[rows] + steps)

    def windows(self, places: Places) -> Windows:
        """The panes that count at each place."""
        codes, boundaries = places
        lo = Runs(self.codes, self.size, self._ends).first(codes, boundaries)
        hi = Runs(self.codes, self.size, self.first).first(codes, boundaries + 1)
        if np.array_equal(self._ends, self.last):
            return Windows(lo, hi, hi)
        return Windows(lo, lo, hi, lambda index, ids: self.last[index] >= boundaries[ids])


def _order(codes: Ints, size: int, first: Ints, last: Ints) -> Ints:
    lengths = last - first
    if not len(lengths) or lengths.min() == lengths.max():
        return sort_rows(codes, size, first)
    by_end = np.argsort(last, kind="stable")
    return by_end[sort_rows(codes[by_end], size, first[by_end])]
