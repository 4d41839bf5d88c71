"""The part of a chain behind its first filters: folds, lookups and the compiled pieces between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, takewhile
from time import perf_counter_ns
from typing import NamedTuple

import pyarrow as pa

from freshet.kernels.folds import CompiledFold, CompiledRows, Folded, LiveFold, compile_fold, compile_rows
from freshet.kernels.folds.folded import Watermarks
from freshet.kernels.folds.panes.panes import LivePanes
from freshet.kernels.folds.panes.rows import PaneRows
from freshet.kernels.superbox.program import Program
from freshet.kernels.table_join import Version
from freshet.model import Operator
from freshet.model.schema import without_arrival

Tables = Mapping[str, Sequence[Version]]
"""The versions of each table that are kept, in order."""


@dataclass
class Memory:
    """The state of one fold within a unit: as it was, and as the chains of the unit have changed it so far.

    Args:
        fold: The fold with what it remembers.
        old: Number of rows of each state stream when the unit begins.
        before: Watermark of each port when the unit begins, in microseconds.
        after: Watermark of each port when the unit has been processed.
    """

    fold: LiveFold
    old: Sequence[int]
    before: tuple[int | None, ...]
    after: tuple[int | None, ...]
    appended: list[list[pa.Table]] = field(default_factory=list)
    """New rows of each state stream that have not been dropped again."""
    dropped: list[int] = field(default_factory=list)
    """Number of rows from before the unit to drop from the low end of each state stream."""

    def __post_init__(self) -> None:
        self.appended = [[] for _ in self.old]
        self.dropped = [0 for _ in self.old]

    @classmethod
    def of(cls, fold: CompiledFold, states: Sequence[pa.Table], before: Watermarks, after: Watermarks) -> Memory:
        """The memory of a fold with these rows of its state streams."""
        return cls(fold.live(states), [state.num_rows for state in states], tuple(before), tuple(after))

    def run(self, table: pa.Table, after: Watermarks, port: int = 0) -> Folded:
        """Folds tuples in."""
        return self._changed(*self.fold.run(table, self.before, after, port))

    def run_rows(self, rows: Sequence[PaneRows]) -> Folded:
        """Folds rows in that were made of tuples for its panes."""
        assert isinstance(self.fold, LivePanes), "only panes are made of such rows"
        return self._changed(*self.fold.run_rows(rows, self.before, self.after))

    def _changed(self, folded: Folded, fold: LiveFold) -> Folded:
        """Applies the changes of one run of the fold."""
        for number, (rows, gone) in enumerate(zip(folded.appended, folded.dropped, strict=True)):
            old = min(gone, self.old[number] - self.dropped[number])
            self.dropped[number] += old
            self.appended[number] = _without(self.appended[number], gone - old)
            if rows.num_rows:
                self.appended[number].append(rows)
        self.fold = fold
        return folded

    def rewrite(self, numbers: Sequence[int]) -> None:
        """Writes some of the state streams anew, in one piece."""
        for number in numbers:
            whole, self.fold = self.fold.gathered(number)
            self.appended[number] = [whole] if whole.num_rows else []
            self.dropped[number] = self.old[number]


def _without(tables: Sequence[pa.Table], rows: int) -> list[pa.Table]:
    """The tables without their first rows."""
    left = []
    for table in tables:
        gone = min(rows, table.num_rows)
        rows -= gone
        if gone < table.num_rows:
            left.append(table.slice(gone))
    return left


@dataclass(frozen=True, slots=True)
class Piped:
    """The output of a chain for a train; see :class:`~freshet.kernels.ChainOutput`."""

    table: pa.Table | pa.RecordBatch
    passed: tuple[int, ...]
    nanos: tuple[int, ...]
    errors: int = 0


class _Given(NamedTuple):
    """What an operator can read besides its tuples."""

    memories: Mapping[str, Memory]
    tables: Tables
    rows: Sequence[PaneRows] | None


_Kernel = Callable[[pa.Table, _Given], tuple[pa.Table, int]]
"""Returns the rows that an operator gives out, and the number of evaluation errors."""


class Rest:
    """The operators behind the first filters and projections of a chain: folds, lookups, and all between them.

    Args:
        operators: The operators.
        columns: Columns of their input, without the arrival.

    Raises:
        Unsupported: An expression is outside the compiled subset.
    """

    def __init__(self, operators: Sequence[Operator], columns: pa.Schema) -> None:
        self._pieces: list[Program | _Kernel] = []
        self.folds: dict[str, CompiledFold] = {}
        """Its folds by name."""
        for piece in split(operators):
            if isinstance(piece, tuple):
                program = Program([piece], columns)
                self._pieces.append(program)
                columns = without_arrival(program.schemas[0])
            elif piece.remembers:
                fold = self.folds[piece.name] = compile_fold(piece, columns)
                self._pieces.append(partial(_run_fold, piece.name))
                columns = fold.output
            else:
                rows = compile_rows(piece, columns)
                self._pieces.append(partial(_run_rows, piece.reads_table, rows))
                columns = rows.output

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self._pieces

    def run(
        self,
        table: pa.Table,
        memories: Mapping[str, Memory],
        tables: Tables | None = None,
        rows: Sequence[PaneRows] | None = None,
    ) -> Piped:
        """Runs them, which changes the memories of the folds.

        Args:
            table: The input.
            memories: The memories of its folds, by name.
            tables: The tables that it joins with.
            rows: The rows that the first fold would make of the input, if they are known.
        """
        passed: list[int] = []
        nanos: list[int] = []
        errors = 0
        for piece in self._pieces:
            began = perf_counter_ns()
            if isinstance(piece, Program):
                [output] = piece.run(table)
                if output.failure is not None:
                    raise RuntimeError(output.failure)
                table = pa.Table.from_batches([output.batch])
                passed += output.passed
                nanos += output.nanos
                errors += output.errors
                continue
            table, wrong = piece(table, _Given(memories, tables or {}, rows))
            rows = None
            errors += wrong
            passed.append(table.num_rows)
            nanos.append(perf_counter_ns() - began)
        return Piped(table, tuple(passed), tuple(nanos), errors)


def _run_fold(name: str, table: pa.Table, given: _Given) -> tuple[pa.Table, int]:
    memory = given.memories[name]
    known = given.rows is not None and isinstance(memory.fold, LivePanes)
    folded = memory.run_rows(given.rows or ()) if known else memory.run(table, memory.after)
    return folded.output, folded.errors


def _run_rows(read: str | None, compiled: CompiledRows, table: pa.Table, given: _Given) -> tuple[pa.Table, int]:
    return compiled.run(table, () if read is None else given.tables.get(read, ()))


def head(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """The plain operators at the beginning of a chain.

    >>> from freshet.model.operators import Filter, Panes, Lifetime
    >>> head([Filter("f", "a"), Panes("q.panes", Lifetime("ts", 60), 60), Filter("g", "b")])
    (Filter(name='f', predicate='a'),)
    """
    return tuple(takewhile(lambda each: each.plain, operators))


def split(operators: Sequence[Operator]) -> list[tuple[Operator, ...] | Operator]:
    """The pieces of a chain: runs of plain operators, and each other operator by itself.

    >>> from freshet.model.operators import Filter, Lifetime, Panes, Project
    >>> panes = Panes("q.panes", Lifetime("ts", 60), 60)
    >>> [type(piece).__name__ for piece in split([Filter("f", "a"), Project("p", ()), panes, Filter("g", "b")])]
    ['tuple', 'Panes', 'tuple']
    """
    pieces: list[tuple[Operator, ...] | Operator] = []
    for plain, group in groupby(operators, lambda each: each.plain):
        some = tuple(group)
        pieces += [some] if plain else some
    return pieces
