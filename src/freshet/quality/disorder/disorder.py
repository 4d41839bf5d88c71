"""The key marks of a stream: up to which key its rows have come (WU §3.2.2).

After p rows of a stream with scrambling factor k, every later key is above the greatest of the first p - k. That
greatest key is the mark by rows. The greatest key of all, less the distance by which keys may lie behind it, is the
mark by distance. One straggler ruins either if it is a maximum over the whole stream, so both are quantiles.

Which of the two is right depends on the stream. Rows that are late by a time are late by many rows in a burst; rows
that overtake each other in a queue are late by a long time in a pause. So the steadier measure counts: the one whose
quantiles over the last blocks of rows differ least. Until that can be told, the lower mark counts. (The higher of both
marks would hold less. Measured as the rows come, it breaks the promise: in Zeek's ``ssl`` log, whose rows are about 5 s
late at any rate, it leaves out 14 % of the rows instead of 1 %.)
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.model.key_order import KeyOrder
from freshet.quality.disorder.heights import Climb, KeyHeights
from freshet.quality.disorder.integer_sketch import IntegerSketch

REFRESH: Final = 1_000
"""Every so many rows the measured disorder takes effect; before the first time there is no mark."""
_BLOCKS: Final = 16
"""Number of blocks of rows by which the steadier measure is chosen."""
_FEW: Final = 4
"""Until there are so many, both count."""
_REMEMBERED: Final = 1_000_000
"""When so many rows are counted, all counts are halved: what came long ago counts less."""
_LEAST: Final = np.iinfo(np.int64).min
_FARTHEST: Final = np.uint64(2**62)
"""Distances above count as this one."""
_GROWS: Final = 4
"""A disorder of more than one in so many of all rows grows with the stream."""
_SETTLED: Final = 20_000
"""Rows before which nothing can be said about that."""

KeyNumbers = NDArray[np.int64]


class Judged(NamedTuple):
    """Some rows of a stream, judged.

    Args:
        past: Places of those that lie at or below the mark that held when they came.
        disorder: What is known after them.
        marks: The mark after each of them; the least number of all: there is none.
    """

    past: KeyNumbers
    disorder: Disorder
    marks: KeyNumbers


@dataclass(frozen=True, slots=True)
class Disorder:
    """What is known of the order of a stream by its key. It never changes itself: :meth:`judge` gives another one. The
    mark never falls, and batches change nothing.

    Args:
        heights: How high the keys had come.
        rows_back: How many rows come between a row and the first one with an equal or greater key.
        behind: How far keys lie behind the greatest one before them.
        mark: Later rows at or below it are past the mark; None: none are.
        back: The measured disorder in rows, as it is in force; None: it is not. If both are, the lower mark counts.
        distance: The same in the units of the key.
        block: The same as ``rows_back`` and ``behind``, of the present block of rows alone.
        blocks: Quantiles of the last blocks, in rows and as distances.

    >>> disorder = Disorder()
    >>> order = KeyOrder("epoch", rows=1)
    >>> past, disorder, _ = disorder.judge(np.array([1, 3, 2, 4, 2, 5]), order)
    >>> past.tolist(), disorder.mark, disorder.heights.rows
    ([4], 4, 6)
    """

    heights: KeyHeights = field(default_factory=KeyHeights)
    rows_back: IntegerSketch = field(default_factory=IntegerSketch)
    behind: IntegerSketch = field(default_factory=IntegerSketch)
    mark: int | None = None
    back: int | None = None
    distance: int | None = None
    block: tuple[IntegerSketch, IntegerSketch] = (IntegerSketch(), IntegerSketch())
    blocks: tuple[tuple[int, int], ...] = ()

    def judge(self, keys: KeyNumbers, order: KeyOrder, sizes: KeyNumbers | None = None) -> Judged:
        """Judges rows by their keys, one after the other. ``sizes``: their bytes, as far as they differ; None: they do
        not."""
        none = np.empty(0, np.int64)
        known, past, marks, done = self, [none], [none], 0
        while done < len(keys):
            # The measured disorder changes at fixed numbers of rows only.
            part = slice(done, done + REFRESH - known.heights.rows % REFRESH)
            late, known, after = known._part(keys[part], order, None if sizes is None else sizes[part])
            past.append(late + done)
            marks.append(after)
            done = part.stop
        return Judged(np.concatenate(past), known, np.concatenate(marks))

    def raised(self, mark: int) -> Disorder:
        """The same with a mark that is at least so high: somebody says that no later key lies at or below it."""
        return self if self.mark is not None and mark <= self.mark else replace(self, mark=mark)

    def measured(self, share: float) -> tuple[int, int] | None:
        """The disorder that this share of the rows does not exceed, in rows and as a distance; None: no rows came."""
        if not self.rows_back.counts:
            return None
        return self.rows_back.quantile(share), self.behind.quantile(share)

    def grows(self, share: float) -> bool:
        """Whether the disorder grows with the stream, so that no memory is enough: the stream is not ordered by its
        key, or falls."""
        found, rows = self.measured(share), self.heights.rows
        if found is None or rows < _SETTLED:
            return False
        first, newest = self.heights.at(rows // 2), self.heights.newest
        assert first is not None
        assert newest is not None
        return found[0] > rows // _GROWS and found[1] > (newest - first) // (_GROWS // 2)

    def _part(self, keys: KeyNumbers, order: KeyOrder, sizes: KeyNumbers | None) -> Judged:
        climb = Climb(self.heights, keys, sizes)
        first = _LEAST if self.mark is None else self.mark
        marks = np.maximum.accumulate(np.concatenate([[first], self._marks(climb, order)]))
        past: KeyNumbers = np.flatnonzero(keys <= marks[1:]) if marks[-1] > _LEAST else np.empty(0, np.int64)
        # Unsigned, so that the distance from one end of all numbers to the other does not wrap around.
        apart = np.maximum(climb.before, keys).astype(np.uint64) - keys.astype(np.uint64)
        behind = np.where(climb.before == _LEAST, 0, np.minimum(apart, _FARTHEST).astype(np.int64))
        back = climb.displacements()
        known = replace(
            self,
            heights=climb.heights,
            rows_back=self.rows_back.plus(back),
            behind=self.behind.plus(behind),
            block=(self.block[0].plus(back), self.block[1].plus(behind)) if order.is_measured else self.block,
            mark=None if marks[-1] == _LEAST else int(marks[-1]),
        )
        known = known._refreshed(order) if climb.heights.rows % REFRESH == 0 else known
        now = known._marks(Climb(climb.heights, keys[:1]), order)
        known = known if now[0] == _LEAST else known.raised(int(now[0]))
        last = _LEAST if known.mark is None else known.mark
        return Judged(past, known, np.append(marks[2:], last))

    def _marks(self, climb: Climb, order: KeyOrder) -> KeyNumbers:
        """The marks before each row; the least number: there is none."""
        back, distance = (self.back, self.distance) if order.is_measured else (order.rows, order.distance)
        found = [] if back is None else [climb.so_far(back)]
        if distance is not None:
            known = climb.before > _LEAST + distance + 1
            found.append(np.where(known, climb.before - distance - 1, _LEAST))
        lower: KeyNumbers = np.minimum.reduce(found) if found else np.full(len(climb.before), _LEAST)
        return lower

    def _refreshed(self, order: KeyOrder) -> Disorder:
        if not order.is_measured:
            return self._halved()
        found, share = self.measured(order.in_order), order.in_order
        assert found is not None
        of_block = (self.block[0].quantile(share), self.block[1].quantile(share))
        blocks = (*self.blocks, of_block)[-_BLOCKS:]
        back, distance = _steadier(found, blocks)
        none = IntegerSketch()
        return replace(self._halved(), back=back, distance=distance, block=(none, none), blocks=blocks)

    def _halved(self) -> Disorder:
        if self.rows_back.total < _REMEMBERED:
            return self
        return replace(self, rows_back=self.rows_back.halved(), behind=self.behind.halved())

    # What is stored

    def packed(self) -> bytes:
        """All of it as bytes."""
        flags = [self.mark, self.back, self.distance]
        head = struct.pack("<q6q", self.heights.rows, *(value for each in flags for value in _optional(each)))
        sketches = map(_pairs, (self.rows_back, self.behind, *self.block))
        parts = [self.heights.kept, *sketches, np.array(self.blocks, np.int64).reshape(-1), self.heights.sizes]
        body = b"".join(struct.pack("<i", len(part)) + np.asarray(part, "<i8").tobytes() for part in parts)
        return zlib.compress(head + body, 1)

    @classmethod
    def unpacked(cls, packed: bytes) -> Disorder:
        """The reverse of :meth:`packed`.

        >>> _, known, _ = Disorder().judge(np.arange(5000) ^ 7, KeyOrder("k"))
        >>> again = Disorder.unpacked(known.packed())
        >>> again.mark == known.mark, again.rows_back == known.rows_back, again.distance, len(known.packed()) < 3000
        (True, True, 7, True)
        """
        data = zlib.decompress(packed)
        rows, *flags = struct.unpack_from("<q6q", data)
        at, parts = struct.calcsize("<q6q"), []
        while at < len(data):
            (length,) = struct.unpack_from("<i", data, at)
            parts.append(np.frombuffer(data, "<i8", length, at + 4).astype(np.int64))
            at += 4 + 8 * length
        pairs = (part.reshape(2, -1).tolist() for part in parts[1:5])
        rows_back, behind, *block = (IntegerSketch(dict(zip(*each, strict=True))) for each in pairs)
        marks = [value if there else None for there, value in zip(flags[::2], flags[1::2], strict=True)]
        blocks = tuple((back, distance) for back, distance in parts[5].reshape(-1, 2).tolist())
        mark, back, distance = marks
        known = rows_back, behind, mark, back, distance
        # Until format 10 the log did not know how many bytes rows have.
        sizes = parts[6] if len(parts) > 6 else np.zeros(len(parts[0]), np.int64)
        return cls(KeyHeights(rows, parts[0], sizes), *known, (block[0], block[1]), blocks)


def _steadier(found: tuple[int, int], blocks: tuple[tuple[int, int], ...]) -> tuple[int | None, int | None]:
    """The disorder in rows, or as a distance: the measure that varied less over the last blocks. Early, both."""
    if len(blocks) < _FEW:
        return found
    by_rows, by_distance = ((max(each) + 1) / (min(each) + 1) for each in zip(*blocks, strict=True))
    return (found[0], None) if by_rows < by_distance else (None, found[1])


def _optional(value: int | None) -> tuple[int, int]:
    return (0, 0) if value is None else (1, value)


def _pairs(sketch: IntegerSketch) -> KeyNumbers:
    counts = dict(sorted(sketch.counts.items()))
    return np.array([*counts.keys(), *counts.values()], np.int64)
