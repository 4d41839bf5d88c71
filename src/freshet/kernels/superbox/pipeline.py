"""What a chain does behind its filters: folds and lookups in turn with compiled pieces, over states and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Final

import pyarrow as pa

from freshet.kernels.folds import CompiledFold, Folded, compile_fold
from freshet.kernels.folds.pane_rows import PaneRows
from freshet.kernels.folds.panes import CompiledPanes
from freshet.kernels.own_operator import CompiledOwn
from freshet.kernels.superbox.program import Program
from freshet.kernels.table_join import CompiledLookup, Version
from freshet.model import Filter, Fold, Lookup, Operator, Project, Train
from freshet.model.operators import Own

Stateless = Filter | Project
Tables = Mapping[str, Sequence[Version]]
"""What is kept of each table, in order."""
MOST_PIECES: Final = 64
"""Segments in which a state may lie, however small they are."""
_SMALL_PIECE: Final = 2**18
_LARGEST: Final = 2**28


def is_scattered(state: Train) -> bool:
    """Whether a state lies in so many small segments that it is worth writing it anew.

    A unit leaves at least one segment. The larger the state, the more of them it may have: so no more bytes are written
    again than a small segment's for each unit. What one worker could hardly hold stays as it is.

    >>> from freshet.model import Segment
    >>> small = tuple(Segment("q.join.state", first, 1, first, 0, 0, f"{first}.arrows", 0, 500) for first in range(65))
    >>> is_scattered(Train("q.join.state", 0, 65, small)), is_scattered(Train("q.join.state", 1, 65, small[1:]))
    (True, False)
    """
    size = sum(segment.length for segment in state.segments)
    return len(state.segments) > max(MOST_PIECES, size // _SMALL_PIECE) and size <= _LARGEST


@dataclass
class Memory:
    """The state of one fold within a unit: what it was, and what the chains of the unit have made of it so far.

    Args:
        states: The live rows of each state stream.
        before: Watermark of each port when the unit begins, in microseconds.
        after: Watermark of each port when it has been processed.
        fold: The fold; None: its rows are left as they are.
    """

    states: list[pa.Table]
    before: tuple[int | None, ...]
    after: tuple[int | None, ...]
    fold: CompiledFold | None = None
    appended: list[list[pa.Table]] = field(default_factory=list)
    """New rows of each state stream that are not dropped again."""
    dropped: list[int] = field(default_factory=list)
    """Rows that were there before the unit and go, from the low end of each state stream."""

    def __post_init__(self) -> None:
        self._old = [table.num_rows for table in self.states]
        self.appended = [[] for _ in self.states]
        self.dropped = [0 for _ in self.states]

    def change(self, appended: Sequence[pa.Table], dropped: Sequence[int]) -> None:
        """Takes what one run of the fold did."""
        for number, (rows, gone) in enumerate(zip(appended, dropped, strict=True)):
            kept = self.states[number].slice(gone)
            self.states[number] = pa.concat_tables([kept, rows]) if rows.num_rows else kept
            old = min(gone, self._old[number] - self.dropped[number])
            self.dropped[number] += old
            self.appended[number] = _without(self.appended[number], gone - old)
            if rows.num_rows:
                self.appended[number].append(rows)

    def gather(self, ranges: Sequence[Train]) -> None:
        """Writes the state streams anew that lie in many small segments.

        Args:
            ranges: Where they lie.
        """
        for number, each in enumerate(ranges):
            if is_scattered(each):
                whole = self.states[number].combine_chunks()
                if whole.num_rows and self.fold is not None:
                    whole = self.fold.merged(number, whole)
                self.appended[number] = [whole] if whole.num_rows else []
                self.dropped[number] = self._old[number]


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
    """What a chain made of a train; see :class:`~freshet.kernels.ChainOutput`."""

    table: pa.Table | pa.RecordBatch
    passed: tuple[int, ...]
    nanos: tuple[int, ...]
    errors: int = 0


class Rest:
    """What comes behind the filters and projections that a chain begins with: folds, lookups, and what is between them.

    Args:
        operators: They.
        columns: Columns in front of them, the arrival apart.

    Raises:
        Unsupported: An expression is outside the compiled subset.
    """

    def __init__(self, operators: Sequence[Operator], columns: pa.Schema) -> None:
        self._pieces: list[Program | tuple[str, CompiledFold | CompiledLookup | CompiledOwn]] = []
        self.folds: dict[str, CompiledFold] = {}
        """Its folds by name."""
        for piece in split(operators):
            if isinstance(piece, tuple):
                program = Program([piece], columns)
                self._pieces.append(program)
                columns = pa.schema(list(program.schemas[0])[:-1])
            elif isinstance(piece, Lookup):
                lookup = CompiledLookup(piece, columns)
                self._pieces.append((piece.table, lookup))
                columns = lookup.output
            elif isinstance(piece, Own):
                own = CompiledOwn(piece, columns)
                self._pieces.append((piece.name, own))
                columns = own.output
            else:
                fold = compile_fold(piece, columns)
                self._pieces.append((piece.name, fold))
                self.folds[piece.name] = fold
                columns = fold.output
        self.schema = columns
        """Columns that it gives out, the arrival apart."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self._pieces

    @property
    def first(self) -> CompiledFold | CompiledLookup | CompiledOwn | None:
        """The first of them."""
        piece = self._pieces[0] if self._pieces else None
        return piece[1] if isinstance(piece, tuple) else None

    def run(
        self,
        table: pa.Table,
        memories: Mapping[str, Memory],
        tables: Tables | None = None,
        rows: Sequence[PaneRows] | None = None,
    ) -> Piped:
        """Runs them; the memories of the folds are changed.

        Args:
            table: What comes in.
            memories: Of its folds.
            tables: That it joins with.
            rows: What the first fold would make of the table, if that is known.
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
            name, compiled = piece
            if isinstance(compiled, CompiledLookup):
                table, wrong = compiled.run(table, (tables or {}).get(name, ()))
                errors += wrong
            elif isinstance(compiled, CompiledOwn):
                table = compiled.run(table)
            else:
                folded = _fold(compiled, table, memories[name], rows)
                table, rows = folded.output, None
                errors += folded.errors
            passed.append(table.num_rows)
            nanos.append(perf_counter_ns() - began)
        return Piped(table, tuple(passed), tuple(nanos), errors)


def _fold(compiled: CompiledFold, table: pa.Table, memory: Memory, rows: Sequence[PaneRows] | None) -> Folded:
    if rows is not None and isinstance(compiled, CompiledPanes):
        folded = compiled.run_rows(rows, memory.states, memory.before, memory.after)
    else:
        folded = compiled.run(table, memory.states, memory.before, memory.after)
    memory.change(folded.appended, folded.dropped)
    return folded


def head(operators: Sequence[Operator]) -> tuple[Stateless, ...]:
    """The filters and projections that a chain begins with.

    >>> from freshet.model.operators import Panes, Lifetime
    >>> head([Filter("f", "a"), Panes("q.panes", Lifetime("ts", 60), 60), Filter("g", "b")])
    (Filter(name='f', predicate='a'),)
    """
    pieces = split(operators)
    return pieces[0] if pieces and isinstance(pieces[0], tuple) else ()


def split(operators: Sequence[Operator]) -> list[tuple[Stateless, ...] | Lookup | Own | Fold]:
    """The pieces of a chain: runs of filters and projections, and each lookup, own operator and fold by itself.

    >>> from freshet.model.operators import Panes, Lifetime
    >>> panes = Panes("q.panes", Lifetime("ts", 60), 60)
    >>> [type(piece).__name__ for piece in split([Filter("f", "a"), Project("p", ()), panes, Filter("g", "b")])]
    ['tuple', 'Panes', 'tuple']
    """
    pieces: list[tuple[Stateless, ...] | Lookup | Own | Fold] = []
    for operator in operators:
        if isinstance(operator, Filter | Project):
            if pieces and isinstance(pieces[-1], tuple):
                pieces[-1] = (*pieces[-1], operator)
            else:
                pieces.append((operator,))
        else:
            assert isinstance(operator, Lookup | Own | Fold), f"{operator.name} is on no path"
            pieces.append(operator)
    return pieces
