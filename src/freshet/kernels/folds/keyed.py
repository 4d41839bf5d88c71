"""Folds whose state lies in parts by key: tuples of different parts never meet, so each part is a fold of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from freshet.kernels.folds.arrays import flat, select
from freshet.kernels.folds.folded import CompiledFold, Folded, LiveFold, OrderedFold, Watermarks
from freshet.kernels.folds.states.hashing import PartNumbers, parts_of_rows
from freshet.model import Fold


def key_columns(fold: CompiledFold, port: int) -> tuple[str, ...]:
    """Columns of an input by which a fold can be divided; empty: it cannot be."""
    operator = fold.operator
    assert isinstance(operator, Fold), f"{operator.name} is no fold"
    return operator.split_keys[port] if operator.split_keys else ()


def key_kinds(fold: CompiledFold) -> tuple[pa.DataType, ...]:
    """Types of the keys by which a fold is divided, in which those of all inputs are compared."""
    return tuple(fold.states[0].field(key).type for key in fold.state_keys)


def part_numbers(columns: Sequence[pa.Array], kinds: Sequence[pa.DataType], rows: int, parts: int) -> PartNumbers:
    """The part of each row, from its keys.

    >>> one, two = ([pa.array([-1, 7], kind)] for kind in (pa.int8(), pa.int64()))
    >>> bool((part_numbers(one, [pa.int64()], 2, 64) == part_numbers(two, [pa.int64()], 2, 64)).all())
    True
    """
    cast = [column.cast(kind, safe=False) for column, kind in zip(columns, kinds, strict=True)]
    return parts_of_rows(cast, rows, parts)


def divided(fold: CompiledFold, rows: pa.Table, parts: int) -> Iterator[pa.Table]:
    """The rows of a state stream by part."""
    if parts == 1:
        yield rows
        return
    numbers = parts_of_rows([flat(rows, key) for key in fold.state_keys], rows.num_rows, parts)
    for part in range(parts):
        yield select(rows, numbers == part)


@dataclass(frozen=True)
class KeyedFold:
    """All parts of a fold, for a worker that runs it alone.

    Its state streams are those of the first part, then those of the second, and so on.

    Args:
        fold: The fold.
        lives: Some or all of its parts, one after the other.
        first: The number of the first of these.
        parts: Number of all parts. Tuples of parts that are not here are left out.

    >>> from freshet.kernels.folds.compile import compile_fold
    >>> from freshet.model import Call, Lifetime, Panes
    >>> panes = Panes("q.panes", Lifetime("ts", 10), 10, ("k",), (Call("n", "count"),))
    >>> fold = compile_fold(panes, pa.schema({"ts": pa.int64(), "k": pa.int64()}))
    >>> nothing = fold.live([schema.empty_table() for schema in fold.states])
    >>> table = pa.table({"ts": [1, 2, 3, 4], "k": [1, 2, 3, 3], "__arrival": [1, 2, 3, 4]})
    >>> folded, later = KeyedFold(fold, (nothing, nothing), 0, 2).run(table, [None], [4])
    >>> [each.num_rows for each in folded.appended], [live.rows for live in later.lives], later.rows
    ([2, 1], [2, 1], 3)
    """

    fold: CompiledFold
    lives: tuple[LiveFold, ...]
    first: int
    parts: int

    @property
    def rows(self) -> int:
        return sum(live.rows for live in self.lives)

    @property
    def nbytes(self) -> int:
        return sum(live.nbytes for live in self.lives)

    def run(self, table: pa.Table, before: Watermarks, after: Watermarks, port: int = 0) -> tuple[Folded, KeyedFold]:
        if ordered := isinstance(self.fold, OrderedFold):
            table = self.fold.answered(table)
        columns = [flat(table, name) for name in key_columns(self.fold, port)]
        numbers = part_numbers(columns, key_kinds(self.fold), table.num_rows, self.parts)
        done = [
            live.run(select(table, numbers == part), before, after, port)
            for part, live in enumerate(self.lives, self.first)
        ]
        folded = _together([each for each, _ in done])
        if ordered:
            here = numbers[(numbers >= self.first) & (numbers < self.first + len(self.lives))]
            back = np.argsort(np.argsort(here, kind="stable"))
            folded = replace(folded, output=folded.output.take(back))
        return folded, self._with([live for _, live in done])

    def moved(self, dropped: Sequence[int], appended: Sequence[pa.Table]) -> KeyedFold:
        size = len(self.fold.states)
        places = [slice(at * size, (at + 1) * size) for at in range(len(self.lives))]
        changed = zip(self.lives, places, strict=True)
        return self._with([live.moved(dropped[place], appended[place]) for live, place in changed])

    def gathered(self, number: int) -> tuple[pa.Table, KeyedFold]:
        part, stream = divmod(number, len(self.fold.states))
        whole, live = self.lives[part].gathered(stream)
        return whole, self._with([*self.lives[:part], live, *self.lives[part + 1 :]])

    def _with(self, lives: Sequence[LiveFold]) -> KeyedFold:
        return KeyedFold(self.fold, tuple(lives), self.first, self.parts)


def _together(folded: Sequence[Folded]) -> Folded:
    return Folded(
        pa.concat_tables([each.output for each in folded]),
        tuple(rows for each in folded for rows in each.appended),
        tuple(gone for each in folded for gone in each.dropped),
        sum(each.errors for each in folded),
    )
