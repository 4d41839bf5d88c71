"""Reduces many overlapping ranges of sorted rows without reading the same rows again and again.

If the ranges are long, rows are first reduced in blocks of 2, 4, 8, ...; a range is then a few blocks of each size.
Only integers are ever subtracted, so floating-point sums do not cancel out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.aggregates.partials import Loaded, Partial, concatenate
from freshet.kernels.folds.arrays import Ints, expand

CHUNK: Final = 1 << 20
"""Approximate number of (window, row) pairs in memory at a time."""
Sees = Callable[[Ints, Ints], Mask]
"""Whether windows see rows, given as pairs of a row and a window."""


class Windows:
    """Windows over sorted rows: a window has all rows in ``[lo, mid)``, and those in ``[mid, hi)`` that it sees.

    Args:
        lo: First row of each window.
        mid: End of the rows that it certainly sees.
        hi: End of the rows that it may see.
        sees: Whether windows see rows, by their numbers; not needed if ``mid`` is ``hi``.
    """

    def __init__(self, lo: Ints, mid: Ints, hi: Ints, sees: Sees | None = None) -> None:
        self.lo, self.mid, self.hi = lo, mid, hi
        self._sees = sees

    def reduce(self, partials: Sequence[Partial], rows: Sequence[Loaded]) -> list[Loaded]:
        """For each partial, the reduced rows of each window."""
        if not partials:
            return []
        high = self._height(len(rows[0].arrays[0]))
        blocks = [r if p.is_integral else _blocks(p, r, high) for p, r in zip(partials, rows, strict=True)]
        sums = [_running_sums(r) if p.is_integral else None for p, r in zip(partials, rows, strict=True)]
        results: list[list[Loaded]] = [[] for _ in partials]
        for begin, end in self._chunks(high):
            some = self._part(begin, end)
            tail = some.tail()
            pairs = _join(some._blocks(len(rows[0].arrays[0]), high), tail)
            for partial, block, running, result in zip(partials, blocks, sums, results, strict=True):
                index, ids = pairs if running is None else tail
                reduced = partial.reduce(block.take(index), ids, end - begin)
                result.append(reduced if running is None else some._plus_sums(reduced, running))
        return [concatenate(result) for result in results]

    def pairs(self) -> Iterator[tuple[int, int, Ints, Ints]]:
        """Begin and end of a part of the windows, the rows that these see, and for each row its window in the part."""
        for begin, end in self._chunks(0):
            some = self._part(begin, end)
            index, ids = _join(expand(some.lo, some.mid), some.tail())
            yield begin, end, index, ids

    def tail(self) -> tuple[Ints, Ints]:
        """The rows beyond ``mid`` that are seen, and the windows that see them."""
        index, ids = expand(self.mid, self.hi)
        if self._sees is None or not len(index):
            return index, ids
        seen = self._sees(index, ids)
        return index[seen], ids[seen]

    def parts(self) -> Iterator[tuple[int, int, Windows]]:
        """The same windows in parts that are small enough to hold the rows beyond ``mid`` in memory."""
        for begin, end in _cut(self.hi - self.mid + 8):
            yield begin, end, self._part(begin, end)

    def _part(self, begin: int, end: int) -> Windows:
        sees = self._sees
        some = None if sees is None else lambda index, ids: sees(index, ids + begin)
        return Windows(self.lo[begin:end], self.mid[begin:end], self.hi[begin:end], some)

    def _height(self, rows: int) -> int:
        """Number of block sizes; 0: windows are reduced row by row, which is less work than making blocks."""
        lengths = self.mid - self.lo
        high = int(lengths.max(initial=1)).bit_length() - 1
        return high if lengths.sum() > 2 * (rows + 2 * high * len(lengths)) else 0

    def _chunks(self, high: int) -> Iterator[tuple[int, int]]:
        lengths = self.mid - self.lo
        return _cut((np.minimum(lengths, 2 * high) if high else lengths) + self.hi - self.mid + 1)

    def _blocks(self, rows: int, high: int) -> tuple[Ints, Ints]:
        """The blocks that make up ``[lo, mid)``, and the windows that they belong to."""
        if not high:
            return expand(self.lo, self.mid)
        index, ids = [], []
        lo, mid, base = self.lo, self.mid, 0
        for _ in range(high + 1):
            some = lo < mid
            for edge, block in ((lo, lo), (mid, mid - 1)):
                odd = np.flatnonzero(some & (edge & 1).astype(np.bool_))
                index.append(block[odd] + base)
                ids.append(odd)
            lo, mid, base, rows = (lo + 1) >> 1, mid >> 1, base + rows, (rows + 1) >> 1
        return np.concatenate(index), np.concatenate(ids)

    def _plus_sums(self, reduced: Loaded, running: Sequence[Ints]) -> Loaded:
        pure = (each[self.mid] - each[self.lo] for each in running)
        return Loaded(tuple(a + b for a, b in zip(reduced.arrays, pure, strict=True)))


def _blocks(partial: Partial, rows: Loaded, high: int) -> Loaded:
    """Rows, then blocks of two rows, of four, ..."""
    levels = [rows]
    for _ in range(high):
        count = len(levels[-1].arrays[0])
        levels.append(partial.reduce(levels[-1], np.arange(count) >> 1, (count + 1) >> 1))
    return concatenate(levels)


def _running_sums(rows: Loaded) -> list[Ints]:
    return [np.concatenate([np.zeros(1, np.int64), np.cumsum(array)]) for array in rows.arrays]


def _join(one: tuple[Ints, Ints], two: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    if not len(two[0]):
        return one
    return np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]])


def _cut(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Pieces of consecutive positions whose sizes add up to about :data:`CHUNK`; without positions, one empty piece."""
    total = np.cumsum(sizes)
    begin, spent = 0, 0
    if not len(sizes):
        yield 0, 0
    while begin < len(sizes):
        end = max(begin + 1, int(np.searchsorted(total, spent + CHUNK, "right")))
        yield begin, end
        begin, spent = end, int(total[end - 1])
