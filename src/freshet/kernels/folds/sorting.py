"""Rows sorted by group and then by a number, and searches in them."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from freshet.kernels.folds.arrays import Ints

_ROOM: Final = 1 << 62


def stable_order(codes: Ints | npt.NDArray[np.uint32], size: int) -> Ints:
    """Sorts small numbers and keeps the order of equal ones: NumPy sorts 16 bits at a time by counting.

    >>> stable_order(np.array([1, 0, 1, 0]), 2).tolist()
    [1, 3, 0, 2]
    """
    if size > 1 << 32:
        return np.argsort(codes, kind="stable")
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    if size > 1 << 16:
        order = order[np.argsort((codes >> 16).astype(np.uint16)[order], kind="stable")]
    return order


def sort_rows(codes: Ints, size: int, values: Ints) -> Ints:
    """The order of rows by group, then by number, then by place."""
    if len(values) < 2 or bool((values[1:] >= values[:-1]).all()):
        return stable_order(codes, size)
    low, high = int(values.min()), int(values.max())
    span = high - low + 1
    if size * span < _ROOM:
        return np.argsort(codes * span + (values - low), kind="stable")
    order = np.argsort(values, kind="stable")
    return order[stable_order(codes[order], size)]


class Runs:
    """Sorted rows: groups ascend, and numbers ascend within each group.

    >>> runs = Runs(np.array([0, 0, 1]), 2, np.array([5, 7, 6]))
    >>> runs.first(np.array([0, 0, 1]), np.array([6, 8, -9])).tolist()
    [1, 2, 2]
    """

    def __init__(self, codes: Ints, size: int, values: Ints) -> None:
        self._low = int(values.min()) if len(values) else 0
        self._span = (int(values.max()) - self._low if len(values) else 0) + 2
        self._ranks: Ints | None = None
        if size * self._span >= _ROOM or self._low + self._span > _ROOM:
            self._ranks = np.unique(values)
            self._span = len(self._ranks) + 1
        self._packed = codes * self._span + self._place(values)

    def first(self, codes: Ints, values: Ints) -> Ints:
        """For each group and value, the first row of the group with a number that is at least the value."""
        return np.searchsorted(self._packed, codes * self._span + self._place(values))

    def _place(self, values: Ints) -> Ints:
        if self._ranks is not None:
            return np.searchsorted(self._ranks, values)
        return np.clip(values, self._low, self._low + self._span - 1) - self._low


def running_maximum(codes: Ints, size: int, values: Ints) -> Ints:
    """For each of the sorted rows, the greatest number in its group up to that row.

    >>> running_maximum(np.array([0, 0, 1]), 2, np.array([9, 8, 1])).tolist()
    [9, 9, 1]
    """
    if not len(values):
        return values
    low = int(values.min())
    span = int(values.max()) - low + 1
    if size * span >= _ROOM:
        ranks = np.unique(values)
        return ranks[running_maximum(codes, size, np.searchsorted(ranks, values))]
    return np.maximum.accumulate(codes * span + (values - low)) - codes * span + low


def previous(codes: Ints, values: Ints, nothing: Ints | int) -> Ints:
    """For each of the sorted rows, the number of the row before it in its group; else ``nothing``."""
    before = np.empty_like(values)
    before[1:] = values[:-1]
    first = np.ones(len(codes), np.bool_)
    first[1:] = codes[1:] != codes[:-1]
    return np.where(first, nothing, before)
