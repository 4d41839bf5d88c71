"""Slabs: consecutive rows of a state stream that never change, with what was made of them so that they are found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.folds.arrays import Ints, flat, select
from freshet.kernels.folds.panes.stream import numbers
from freshet.kernels.folds.states.hashing import Hashes, hash_rows
from freshet.kernels.folds.states.key_index import KeyIndex, ValidTimes

Keys = tuple[str, ...]
_BLOCK: Final = 1024


class Slab:
    """Rows in one piece. Everything else is made when it is first needed, and kept.

    Args:
        table: The rows.
        end: The column that says until when a row is needed.
        start: The column that says since when it is valid; None: it is found by its keys alone.

    >>> slab = Slab(pa.table({"k": ["a", "b", "c"], "end": [5, 9, 7]}), "end")
    >>> slab.ended(7), slab.open_from(0, 5), slab.between(5, 8).tolist()
    (2, 1, [2])
    """

    def __init__(self, table: pa.Table, end: str, start: str | None = None) -> None:
        self.table: Final = table.combine_chunks()
        self._end, self._start = end, start
        self._hashes: dict[Keys, Hashes] = {}
        self._indexes: dict[Keys, KeyIndex] = {}

    def like(self, table: pa.Table) -> Slab:
        """Other rows of the same stream."""
        return Slab(table, self._end, self._start)

    @staticmethod
    def merged(slabs: Sequence[Slab], skipped: int) -> Slab:
        """The rows of several slabs one after the other, without the first ``skipped`` rows."""
        first = slabs[0]
        whole = first.like(pa.concat_tables([slab.table for slab in slabs]).slice(skipped))
        # The others are small, and may not have been looked up yet.
        for keys in max(slabs, key=len)._indexes:
            indexes = [slab.index(keys) for slab in slabs]
            whole._indexes[keys] = KeyIndex.merged(indexes, skipped, whole.times)
        return whole

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def nbytes(self) -> int:
        """Memory that it takes with all that was made of it."""
        made = sum(index.nbytes for index in self._indexes.values()) + sum(h.nbytes for h in self._hashes.values())
        return int(self.table.nbytes) + made + (self._by_end[0].nbytes if "_by_end" in self.__dict__ else 0)

    @cached_property
    def ends(self) -> Ints:
        """Until when each row is needed."""
        return numbers(self.table, self._end)

    @cached_property
    def times(self) -> ValidTimes | None:
        """When rows are valid."""
        return None if self._start is None else ValidTimes(numbers(self.table, self._start), self.ends)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The least and the greatest end."""
        return int(self.ends.min()), int(self.ends.max())

    @cached_property
    def first_start(self) -> int:
        """Since when the first of its rows is valid."""
        assert self.times is not None
        return int(self.times.start.min())

    def hashes(self, keys: Keys) -> Hashes:
        """The hashes of all rows."""
        if keys not in self._hashes:
            self._hashes[keys] = hash_rows([flat(self.table, key) for key in keys], len(self))
        return self._hashes[keys]

    def index(self, keys: Keys) -> KeyIndex:
        """The index by some columns."""
        if keys not in self._indexes:
            self._indexes[keys] = KeyIndex.of(self.hashes(keys), self.times)
            self._hashes.pop(keys)
        return self._indexes[keys]

    def ended(self, limit: int) -> int:
        """Number of rows that are not needed after a time."""
        if not len(self) or limit < self.span[0]:
            return 0
        return len(self) if limit >= self.span[1] else int(np.searchsorted(self._by_end[0], limit, "right"))

    def open_from(self, row: int, limit: int) -> int:
        """The first row from one on that is needed after a time."""
        block = _BLOCK
        while row < len(self):
            open_ = self.ends[row : row + block] > limit
            if open_.any():
                return row + int(open_.argmax())
            row, block = row + block, 2 * block
        return len(self)

    def open(self, limit: int | None) -> Slab:
        """The rows that are needed after a time; None: all."""
        if limit is None or not self.ended(limit):
            return self
        return self.like(select(self.table, self.ends > limit))

    def between(self, after: int | None, until: int) -> Ints:
        """The rows with an end in ``(after, until]``, in their order."""
        if not len(self) or until < self.span[0] or (after is not None and after >= self.span[1]):
            return np.zeros(0, np.int64)
        ends, order = self._by_end
        lo = 0 if after is None else int(np.searchsorted(ends, after, "right"))
        found = slice(lo, int(np.searchsorted(ends, until, "right")))
        return np.arange(len(self))[found] if order is None else np.sort(order[found])

    def earliest_open(self, limit: int | None) -> int | None:
        """Since when the first of the rows is valid that are needed after a time; None: there is none."""
        if limit is None or not (ended := self.ended(limit)):
            return self.first_start if len(self) else None
        return None if ended == len(self) else int(self._starts_from[ended])

    @cached_property
    def _by_end(self) -> tuple[Ints, Ints | None]:
        """The sorted ends, and the numbers of their rows; None: they are in order."""
        if bool((self.ends[1:] >= self.ends[:-1]).all()):
            return self.ends, None
        order = np.argsort(self.ends, kind="stable")
        return self.ends[order], order

    @cached_property
    def _starts_from(self) -> Ints:
        """The earliest start of the rows from each place on, by their ends."""
        assert self.times is not None
        order = self._by_end[1]
        starts = self.times.start if order is None else self.times.start[order]
        return np.minimum.accumulate(starts[::-1])[::-1]
