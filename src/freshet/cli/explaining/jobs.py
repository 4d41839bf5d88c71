"""The part of ``freshet explain`` on how the operators of a query run: its readers, the jobs of a step, their forms.

It asks the engine and the planner of jobs about a step that runs the whole query, over trains of made-up sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from freshet.app.declared.checking import Checked
from freshet.app.remembered.forms import inputs_of
from freshet.engine.binding import MadeUp, bind
from freshet.engine.board import Board
from freshet.kernels import why_not
from freshet.kernels.superbox.program import Program
from freshet.kernels.task_split import KEYED_ROWS, KEYED_STATE, OVERHEAD, RESIDENT_OVERHEAD, rows_for_parts
from freshet.model import Operator, Query, State, Step
from freshet.model.scheduling.unit import components
from freshet.spark.driver.forms import Form, Forms
from freshet.spark.driver.planning import Piece, Planner, TaskLimits, jobs
from freshet.sql.lower.output import SqlTyper

_CORES = (2, 8, 64)


def explain_jobs(query: Query, checked: Checked, no_residents: str | None = None) -> Iterator[str]:
    """Yields the lines on what a query reads, on the jobs in which a step runs all of it, and on who runs these;
    ``no_residents`` says why there are none."""
    for each in inputs_of(query.graph):
        if not each.is_queue:
            yield f"reads {each.stream}: reader {each.reader}"
    board = Board(lambda stream, first, end: 0, lambda nodes: "")
    board.add(query)
    forms = Forms(board.network, _Judge(query, checked.schemas))
    pieces = _pieces(board, forms, 1)
    told = [_told(forms, form, [pieces[number] for number in numbers]) for form, numbers in jobs(pieces)]
    if len(told) == 1:
        yield f"one job per step: {told[0][1]}"
    else:
        yield f"{len(told)} jobs per step, because not all its expressions are compiled"
        for number, (names, form) in enumerate(told, start=1):
            yield f"  job {number}: {names}: {form}"
    yield f"way: {_way(pieces, no_residents)}"
    overhead = RESIDENT_OVERHEAD if no_residents is None else OVERHEAD
    rows = {cores: rows_for_parts(cores, overhead) or 0 for cores in _CORES}
    if any(piece.parted for piece in _pieces(board, forms, rows[_CORES[0]], overhead)):
        quicker = ", ".join(f"{least / 1e6:.2g} million on {cores} cores" for cores, least in rows.items())
        yield f"merges a train on all cores if it has enough tuples to make that quicker ({quicker})"
    for fold in board.folds(range(len(board.operators))) if no_residents is None else ():
        if forms.is_divisible(fold.node.name):
            yield (
                f"state of {fold.node.name}: in one part; with several residents in a part for each, by key, if it has "
                f"{KEYED_STATE:,} rows and a train has {KEYED_ROWS:,} tuples"
            )


def _way(pieces: Sequence[Piece], no_residents: str | None) -> str:
    if any(piece.form != "vectorised" for piece in pieces):
        return "Spark jobs, because not all its expressions are compiled"
    if no_residents is not None:
        return f"Spark jobs, because {no_residents}"
    return "a resident, if one is there; else Spark jobs"


def _pieces(board: Board, forms: Forms, rows: int, overhead: float = OVERHEAD) -> list[Piece]:
    """The pieces of a step that runs all operators of a board over trains of ``rows`` rows, if a second job takes this
    overhead."""
    for operator in board.operators:
        for edge in operator.edges:
            edge.waiting = rows if edge.edge.source is None else 0
    step = Step(tuple(range(len(board.operators))))
    unit = bind(board, step, "explained", rows, MadeUp(), lambda chains: _states(board))
    assert unit is not None
    return Planner(unit, forms, TaskLimits(_CORES[0], part_overhead=overhead)).pieces(components(unit.chains))


def _states(board: Board) -> tuple[State, ...]:
    folds = board.folds(range(len(board.operators)))
    return tuple(State(fold.node.name, (), (None,) * fold.ports, (None,) * fold.ports) for fold in folds)


def _told(forms: Forms, form: Form, pieces: Sequence[Piece]) -> tuple[str, str]:
    """The operators of a job, and its form with the reason."""
    numbers = [number for piece in pieces for number in piece.chain.nodes]
    operators = forms.operators(numbers)
    names = ", ".join(operator.name for operator in operators)
    if form == "catalyst":
        return names, next(why for why in map(forms.why_not, numbers) if why)
    one_task = "; in one task, because it remembers" if any(each.remembers for each in operators) else ""
    return names, f"{form}, because all its expressions are compiled{one_task}"


class _Judge:
    """Says why an operator is not compiled, as far as that is known without Spark."""

    def __init__(self, query: Query, schemas: Mapping[str, pa.Schema]) -> None:
        self._graph = query.graph
        self._schemas = query.graph.schemas(schemas, _Typer())

    def __call__(self, number: int, operator: Operator) -> str | None:
        schema = self._schemas[self._graph.inputs[operator.name][0]]
        if unknown := [field.name for field in schema if pa.types.is_null(field.type)]:
            return f"form chosen at the start, because only Spark knows the type of {', '.join(unknown)}"
        reason = why_not((operator,), schema)
        return None if reason is None else f"catalyst, because {reason} is not compiled"


class _Typer(SqlTyper):
    """Asks the kernels for a type that the text alone does not tell."""

    def plain(self, operator: Operator, schema: pa.Schema) -> pa.Schema:
        told = super().plain(operator, schema)
        if not _has_unknown(told) or _has_unknown(schema) or why_not((operator,), schema) is not None:
            return told
        return pa.schema(list(Program([(operator,)], schema).schemas[0])[:-1])


def _has_unknown(schema: pa.Schema) -> bool:
    return any(pa.types.is_null(kind) for kind in schema.types)
