"""Distinct values and quantiles of moving windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from freshet.kernels.folds.aggregates.partials import valid_of
from freshet.kernels.folds.aggregates.sketch import buckets, rank
from freshet.kernels.folds.aggregates.wavelet import Wavelet
from freshet.kernels.folds.arrays import Ints
from freshet.kernels.folds.groups import encode_groups
from freshet.kernels.folds.sorting import Runs, previous, stable_order
from freshet.kernels.folds.windows import Windows


class _Known:
    """Windows over the rows that have a value, which is to say not NULL."""

    def __init__(self, values: pa.Array, windows: Windows) -> None:
        valid = valid_of(values)
        self.valid = np.ones(len(values), np.bool_) if valid is None else valid
        self.places = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.valid)])
        """The number of rows with a value before each row."""
        self.lo, self.mid = self.places[windows.lo], self.places[windows.mid]
        self._windows = windows

    def tails(self) -> Iterator[tuple[int, int, Ints, Ints]]:
        """A part of the windows at a time; the rows with a value that they see beyond ``mid``, and who sees each."""
        for begin, end, some in self._windows.parts():
            index, ids = some.tail()
            keep = self.valid[index]
            yield begin, end, self.places[index[keep]], ids[keep]


def distinct(values: pa.Array, codes: Ints, windows: Windows) -> Ints:
    """The number of distinct values in each window.

    In ``[lo, mid)`` each row counts whose value did not occur before it, from ``lo`` on. Beyond ``mid`` each distinct
    value counts that does not occur in ``[lo, mid)``.
    """
    known = _Known(values, windows)
    both, size = encode_groups([codes, values], len(values))
    both = both[known.valid]
    order = stable_order(both, size)
    earlier = np.empty(len(both), np.int64)
    earlier[order] = previous(both[order], order, -1) + 1
    counts = Wavelet(earlier).below(known.lo, known.mid, known.lo + 1)
    runs = Runs(both[order], size, order)
    for begin, end, index, ids in known.tails():
        pairs = np.unique(ids * size + both[index])
        ids, value = pairs // size, pairs % size
        lo, mid = known.lo[begin:end][ids], known.mid[begin:end][ids]
        new = runs.first(value, lo) == runs.first(value, mid)
        counts[begin:end] += np.bincount(ids[new], minlength=end - begin)
    return counts


def quantiles(values: pa.Array, windows: Windows, shares: Sequence[float]) -> list[Ints]:
    """For each share the bucket in which the quantile of each window lies."""
    known = _Known(values, windows)
    words, numbers = np.unique(buckets(values)[known.valid], return_inverse=True)
    if not len(words):
        return [np.zeros(len(windows.lo), np.int64) for _ in shares]
    wavelet = Wavelet(numbers)
    results = [np.zeros(len(windows.lo), np.int64) for _ in shares]
    for begin, end, index, ids in known.tails():
        lo, mid = known.lo[begin:end], known.mid[begin:end]
        sizes = mid - lo + np.bincount(ids, minlength=end - begin)
        for share, result in zip(shares, results, strict=True):
            found = wavelet.smallest(lo, mid, rank(share, sizes), numbers[index], ids)
            result[begin:end] = words[np.minimum(found, len(words) - 1)]
    return results
