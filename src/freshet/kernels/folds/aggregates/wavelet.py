"""Ranks and quantiles of any range of an array: a wavelet matrix.

As in F. Claude and G. Navarro, "The wavelet matrix", SPIRE 2012.

Bit by bit, from the highest, the numbers are split into those with a 0 and those with a 1. The number of zeros up to
each place tells where a range goes. So a query takes one step for each bit, whatever the length of its range.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from freshet.kernels.folds.arrays import Ints


class Wavelet:
    """Answers queries about ranges of an array of numbers, none of which is negative.

    >>> some = Wavelet(np.array([5, 1, 4, 1]))
    >>> some.below(np.array([0, 1]), np.array([4, 3]), np.array([5, 4])).tolist()
    [3, 1]
    """

    def __init__(self, numbers: Ints) -> None:
        self._bits = int(numbers.max()).bit_length() if len(numbers) else 0
        self._zeros: list[npt.NDArray[np.int32]] = []
        """For each bit, the number of zeros up to each place."""
        for bit in reversed(range(self._bits)):
            is_zero = (numbers >> bit) & 1 == 0
            self._zeros.append(np.concatenate([np.zeros(1, np.int32), np.cumsum(is_zero, dtype=np.int32)]))
            numbers = np.concatenate([numbers[is_zero], numbers[~is_zero]])

    def below(self, lo: Ints, hi: Ints, limits: Ints) -> Ints:
        """The number of numbers in each range ``[lo, hi)`` that are smaller than its limit."""
        found = np.where(limits >= 1 << self._bits, hi - lo, 0)
        for bit, zeros in zip(reversed(range(self._bits)), self._zeros, strict=True):
            before_lo, before_hi = zeros[lo], zeros[hi]
            one = (limits >> bit) & 1 == 1
            found = np.where(one & (limits < 1 << self._bits), found + before_hi - before_lo, found)
            lo = np.where(one, zeros[-1] + lo - before_lo, before_lo)
            hi = np.where(one, zeros[-1] + hi - before_hi, before_hi)
        return found

    def smallest(self, lo: Ints, hi: Ints, ranks: Ints, extra: Ints, ids: Ints) -> Ints:
        """The number with a rank (from 0) among those in each range and the extra numbers that belong to it.

        Args:
            lo: First place of each range.
            hi: Its end.
            ranks: The rank for each range.
            extra: Additional numbers; none has more bits than the greatest number of the array.
            ids: The range to which each of them belongs.

        >>> some = Wavelet(np.array([5, 1, 4]))
        >>> nothing = np.zeros(0, np.int64)
        >>> some.smallest(np.array([0]), np.array([3]), np.array([1]), nothing, nothing).tolist()
        [4]
        """
        found = np.zeros(len(lo), np.int64)
        for bit, zeros in zip(reversed(range(self._bits)), self._zeros, strict=True):
            before_lo, before_hi = zeros[lo], zeros[hi]
            ones = (extra >> bit) & 1 == 1
            smaller = before_hi - before_lo + np.bincount(ids[~ones], minlength=len(lo))
            one = ranks >= smaller
            ranks = np.where(one, ranks - smaller, ranks)
            found |= one.astype(np.int64) << bit
            lo = np.where(one, zeros[-1] + lo - before_lo, before_lo)
            hi = np.where(one, zeros[-1] + hi - before_hi, before_hi)
            same = ones == one[ids]
            extra, ids = extra[same], ids[same]
        return found
