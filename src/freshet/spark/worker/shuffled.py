"""Large joins: new tuples of one input meet the remembered ones of the other through a shuffle, by Spark's own join.

When that pays is said in :mod:`freshet.kernels.shuffling`. The pairs are made by a plan with an exchange. It is built
anew for each unit, because one that is kept would give the rows of its first run again. What is remembered is brought
up to date by the fold itself, which then meets an empty other input.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
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
_OWN, _OTHER = "own_", "other_"


def shuffled_plan(session: SparkSession, number: int, join: CompiledJoin, port: int, tasks: int) -> DataFrame:
    """The plan of the pairs that the new tuples of one input of a join make, for one unit."""
    own, other = (_prefixed(join.states[at], prefix) for at, prefix in ((port, _OWN), (1 - port, _OTHER)))
    fresh = session.range(0, tasks, 1, tasks).mapInArrow(partial(read_fresh, number, port), schema_text(own))
    known = session.range(0, tasks, 1, tasks).mapInArrow(partial(read_known, number, 1 - port), schema_text(other))
    equal = [F.col(_OWN + key) == F.col(_OTHER + key) for key in join.key_names]
    together = [F.col(_OWN + FROM) < F.col(_OTHER + UNTIL), F.col(_OTHER + FROM) < F.col(_OWN + UNTIL)]
    pairs = fresh.join(known.hint("merge"), reduce(Column.__and__, [*equal, *together]))
    chosen = [F.col((_OWN if at == port else _OTHER) + column).alias(name) for name, at, column in join.given]
    times = [
        choose(_OWN + name, _OTHER + name).alias(name)
        for name, choose in ((FROM, F.greatest), (UNTIL, F.least), (ARRIVAL, F.greatest))
    ]
    return pairs.select(*chosen, *times).mapInArrow(partial(write_pairs, number), REPORT_COLUMNS)


def read_fresh(number: int, port: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """This task's part of the train at a port, as the join remembers tuples."""
    drain(batches)
    task = Task.begin()
    [chain] = task.assignment.chains
    table = task.read(task.train(chain.trains[port]), task.spec.inputs[number][port])
    yield from _batches(_join(task, number).fresh(table, port), _OWN)


def read_known(number: int, port: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """This task's part of what is remembered at a port."""
    drain(batches)
    task = Task.begin()
    (state,) = task.assignment.states
    if state.ranges:
        table = task.read_state(state.fold, task.train(state.ranges[port]), _join(task, number).states[port])
        yield from _batches(table, _OTHER)


def write_pairs(number: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The pairs of this task's keys, into its file."""
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


def _batches(table: pa.Table, prefix: str) -> Iterator[pa.RecordBatch]:
    renamed = table.rename_columns([prefix + name for name in table.column_names])
    return iter(renamed.to_batches(max_chunksize=_BATCH_ROWS))


def _prefixed(schema: pa.Schema, prefix: str) -> pa.Schema:
    return pa.schema([pa.field(prefix + field.name, field.type) for field in schema])


def _join(task: Task, number: int) -> CompiledJoin:
    return compiled_join(task.spec.operators[number], *task.spec.inputs[number])


@lru_cache(maxsize=64)
def compiled_join(operator: Operator, left: pa.Schema, right: pa.Schema) -> CompiledJoin:
    """A join, compiled once."""
    assert isinstance(operator, Join)
    return CompiledJoin(operator, left, right)
