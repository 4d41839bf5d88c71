"""The rows of a state stream in memory: what a step costs depends on what it touches, not on how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.folds.arrays import Ints, expand
from freshet.kernels.folds.states.slab import Keys, Slab

GROWTH: Final = 4
"""A slab is merged with the one before it unless that is more than this number of times as large."""


@dataclass(frozen=True)
class StateRows:
    """Slabs of rows, oldest first. It never changes: a change gives another one, which shares nearly all slabs.

    Slabs become larger towards the oldest, as in P. O'Neil et al., "The log-structured merge-tree", 1996: there are few
    of them, and a row is merged only a few times.

    Args:
        empty: A slab without rows.
        slabs: The slabs that have some.
        skipped: Number of rows of the first slab that are no longer part of the state.
        tried: Number of rows when merging equal ones was last tried in vain; 0: it was not, or nobody knows.

    >>> rows = StateRows.of(pa.table({"end": [1, 2, 3]}), "end")
    >>> later = rows.drop(1).append(Slab(pa.table({"end": [4]}), "end"))
    >>> len(rows), later.table().column("end").to_pylist()
    (3, [2, 3, 4])
    """

    empty: Slab
    slabs: tuple[Slab, ...] = ()
    skipped: int = 0
    tried: int = 0

    @classmethod
    def of(cls, table: pa.Table, end: str, start: str | None = None) -> StateRows:
        """The rows of a table."""
        empty = Slab(table.slice(0, 0), end, start)
        return cls(empty, (Slab(table, end, start),) if table.num_rows else ())

    def replaced(self, table: pa.Table) -> StateRows:
        """Other rows of the same stream."""
        return StateRows(self.empty).append(self.empty.like(table))

    @cached_property
    def begins(self) -> Ints:
        """The place of the first row of each slab, and the place after the last row; skipped rows have places, too."""
        return np.cumsum([0, *map(len, self.slabs)])

    def __len__(self) -> int:
        return int(self.begins[-1]) - self.skipped

    @property
    def nbytes(self) -> int:
        """Memory that the slabs take."""
        return sum(slab.nbytes for slab in self.slabs)

    def table(self) -> pa.Table:
        """All rows."""
        return pa.concat_tables([self.empty.table, *(slab.table for slab in self.slabs)]).slice(self.skipped)

    def take(self, places: Ints, columns: Sequence[str]) -> pa.Table:
        """The rows at some places."""
        if not len(places):
            return self.empty.table.select(columns)
        number = np.searchsorted(self.begins, places, "right") - 1
        low, high = int(number.min()), int(number.max())
        if low == high:
            return self.slabs[low].table.select(columns).take(pa.array(places - self.begins[low]))
        order = np.argsort(number, kind="stable")
        cuts = np.searchsorted(number[order], np.arange(len(self.slabs) + 1))
        some = [
            slab.table.select(columns).take(pa.array(places[order[lo:hi]] - begin))
            for slab, begin, lo, hi in zip(self.slabs, self.begins, cuts, cuts[1:], strict=False)
            if lo < hi
        ]
        together = pa.concat_tables(some).combine_chunks()
        if bool((number[1:] >= number[:-1]).all()):
            return together
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return together.take(pa.array(back))

    def with_slab(self, slab: Slab) -> StateRows:
        """The rows and those of a slab, for a while: nothing is merged."""
        return replace(self, slabs=(*self.slabs, slab)) if len(slab) else self

    def append(self, slab: Slab) -> StateRows:
        """The rows and those of a slab."""
        if not len(slab):
            return self
        slabs, size = [*self.slabs, slab], len(slab)
        at = len(slabs) - 1
        while at and len(slabs[at - 1]) <= GROWTH * size:
            at -= 1
            size += len(slabs[at])
        if at == len(slabs) - 1:
            return replace(self, slabs=tuple(slabs))
        skipped = self.skipped if at == 0 else 0
        whole = Slab.merged(slabs[at:], skipped)
        return replace(self, slabs=(*slabs[:at], whole), skipped=self.skipped - skipped)

    def drop(self, rows: int) -> StateRows:
        """The rows without the first ones."""
        skipped = self.skipped + rows
        gone = int(np.searchsorted(self.begins[1:], skipped, "right"))
        return replace(self, slabs=self.slabs[gone:], skipped=skipped - int(self.begins[gone]))

    def moved(self, dropped: int, appended: pa.Table) -> StateRows:
        """The rows without the first ones, and with more."""
        return self.drop(dropped).append(self.empty.like(appended))

    def ended(self, limit: int) -> int:
        """Number of rows that are not needed after a time. All that were dropped must be among them."""
        return sum(slab.ended(limit) for slab in self.slabs) - self.skipped

    def ended_first(self, limit: int) -> int:
        """Number of rows before the first one that is needed after a time."""
        found, row = 0, self.skipped
        for slab in self.slabs:
            at = len(slab) if limit >= slab.span[1] else slab.open_from(row, limit)
            found += at - row
            if at < len(slab):
                break
            row = 0
        return found

    def alike(self, probe: Slab, keys: Keys) -> Ints:
        """The places of the rows with the same keys as a row of a slab, in their order, and seldom of a few others."""
        hashes, places = np.unique(probe.hashes(keys)), [np.zeros(0, np.int64)]
        if not len(hashes):
            return places[0]
        for slab, begin in zip(self.slabs, self.begins, strict=False):
            index = slab.index(keys)
            found, _ = expand(*index.find(hashes))
            places.append(np.sort(index.rows[found]) + begin)
        together = np.concatenate(places)
        return together[together >= self.skipped]

    def between(self, after: int | None, until: int) -> Ints:
        """The places of the rows with an end in ``(after, until]``."""
        found = [slab.between(after, until) + begin for slab, begin in zip(self.slabs, self.begins, strict=False)]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def open(self, limit: int | None) -> pa.Table:
        """The rows that are needed after a time; None: all."""
        if limit is None:
            return self.table()
        slabs = [slab.open(limit).table for slab in self.slabs]
        return pa.concat_tables([self.empty.table, *slabs])
