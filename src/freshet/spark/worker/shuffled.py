"""Large joins: new tuples of one input meet the remembered ones of the others through a shuffle, by Spark's own join.

:mod:`freshet.kernels.shuffling` says when that pays. A plan with exchanges makes the rows. It is built anew for each
unit, because a plan that is kept would give the rows of its first run again. Afterwards the fold itself brings what it
remembers up to date; its other inputs are empty then.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial, reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from freshet.kernels.folds.join import CompiledJoin
from freshet.kernels.superbox.allowance import allowance, check_rows
from freshet.model import ARRIVAL, Join, Operator, schema_text
from freshet.model.operators import FROM, UNTIL
from freshet.spark.worker.report import REPORT_COLUMNS, ChainReport
from freshet.spark.worker.task import Task, drain

_BATCH_ROWS: Final = 65_536


def shuffled_plan(session: SparkSession, number: int, join: CompiledJoin, port: int, tasks: int) -> DataFrame:
    """The plan of the rows that the new tuples of one input of a join make, for one unit."""

    def tuples(at: int) -> DataFrame:
        read = read_fresh if at == port else read_known
        schema = pa.schema([(_named(at, field.name), field.type) for field in join.states[at]])
        return session.range(0, tasks, 1, tasks).mapInArrow(partial(read, number, at), schema_text(schema))

    rows, met = tuples(port), [port]
    for at in (at for at in range(len(join.states)) if at != port):
        rows = rows.join(tuples(at).hint("merge"), _meet(join, met, at))
        met.append(at)
    chosen = [F.col(_named(at, column)).alias(name) for name, at, column in join.given]
    choices = ((FROM, F.greatest), (UNTIL, F.least), (ARRIVAL, F.greatest))
    times = [choose(*(_named(at, name) for at in met)).alias(name) for name, choose in choices]
    return rows.select(*chosen, *times).mapInArrow(partial(write_rows, number), REPORT_COLUMNS)


def _meet(join: CompiledJoin, met: Sequence[int], at: int) -> Column:
    """Whether tuples of some inputs, which have already met, also meet a tuple of another input. It must be valid
    together with each of them; since they are valid at the same time, it is then valid together with all of them."""
    known = {key: other for other in reversed(met) for key in join.keys[other]}
    equal = [F.col(_named(known[key], key)) == F.col(_named(at, key)) for key in join.keys[at] if key in known]
    together = [
        F.col(_named(one, FROM)) < F.col(_named(two, UNTIL)) for other in met for one, two in ((other, at), (at, other))
    ]
    return reduce(Column.__and__, [*equal, *together])


def read_fresh(number: int, port: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """This task's part of the train at a port, as the join remembers tuples."""
    drain(batches)
    task = Task.begin()
    [chain] = task.assignment.chains
    table = task.read(task.train(chain.trains[port]), task.spec.inputs[number][port])
    yield from _batches(_join(task, number).fresh(table, port), port)


def read_known(number: int, port: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """This task's part of what is remembered at a port."""
    drain(batches)
    task = Task.begin()
    (state,) = task.assignment.states
    if state.ranges:
        table = task.read_state(state.fold, task.train(state.ranges[port]), _join(task, number).states[port])
        yield from _batches(table, port)


def write_rows(number: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of this task's keys, into its file."""
    began = time.perf_counter_ns()
    task = Task.begin()
    ranges = (each for state in task.assignment.states for each in state.ranges)
    with allowance(task.assignment.chains[0].rows + sum(each.rows for each in ranges), task.spec.rows_out):
        received = _received(batches)
    schema = _join(task, number).whole
    rows = sum(batch.num_rows for batch in received)
    report = ChainReport(0, None, (rows,), (time.perf_counter_ns() - began,))
    found = pa.Table.from_batches(received) if rows else schema.empty_table()
    columns = [found.column(place).cast(field.type) for place, field in enumerate(schema)]
    task.add(report, pa.Table.from_arrays(columns, schema=schema))
    yield task.finish()


def _received(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    received, rows = [], 0
    for batch in batches:
        rows += batch.num_rows
        check_rows(rows)
        received.append(batch)
    return received


def _batches(table: pa.Table, port: int) -> Iterator[pa.RecordBatch]:
    renamed = table.rename_columns([_named(port, name) for name in table.column_names])
    return iter(renamed.to_batches(max_chunksize=_BATCH_ROWS))


def _named(port: int, column: str) -> str:
    return f"port_{port}_{column}"


def _join(task: Task, number: int) -> CompiledJoin:
    return compiled_join(task.spec.operators[number], *task.spec.inputs[number])


@lru_cache(maxsize=64)
def compiled_join(operator: Operator, *inputs: pa.Schema) -> CompiledJoin:
    """A join, compiled once."""
    assert isinstance(operator, Join)
    return CompiledJoin(operator, *inputs)
