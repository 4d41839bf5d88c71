"""What a fold remembers as plain tables: for folds that read all of it in each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from freshet.kernels.folds.folded import Folded, Watermarks


class TableFold(Protocol):
    """A fold over the tables of its state."""

    def run(
        self, table: pa.Table, states: Sequence[pa.Table], before: Watermarks, after: Watermarks, port: int = 0
    ) -> Folded:
        """Folds tuples in; see :class:`~freshet.kernels.folds.folded.LiveFold`."""


@dataclass(frozen=True)
class HeldTables:
    """A fold with the tables that it remembers.

    Args:
        fold: The fold.
        states: The rows of each state stream.
    """

    fold: TableFold
    states: tuple[pa.Table, ...]

    @property
    def rows(self) -> int:
        return sum(state.num_rows for state in self.states)

    @property
    def nbytes(self) -> int:
        return sum(state.nbytes for state in self.states)

    def run(self, table: pa.Table, before: Watermarks, after: Watermarks, port: int = 0) -> tuple[Folded, HeldTables]:
        folded = self.fold.run(table, self.states, before, after, port)
        return folded, self.moved(folded.dropped, folded.appended)

    def moved(self, dropped: Sequence[int], appended: Sequence[pa.Table]) -> HeldTables:
        changes = zip(self.states, dropped, appended, strict=True)
        states = [pa.concat_tables([state.slice(gone), new]) for state, gone, new in changes]
        return HeldTables(self.fold, tuple(states))

    def gathered(self, number: int) -> tuple[pa.Table, HeldTables]:
        whole = self.states[number].combine_chunks()
        return whole, HeldTables(self.fold, (*self.states[:number], whole, *self.states[number + 1 :]))
