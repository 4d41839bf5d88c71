"""Large joins: new tuples of one side meet the remembered ones of the other through a shuffle, by Spark's own join.

When that pays is said in :mod:`freshet.kernels.shuffling`. The pairs are made by a plan with an exchange. It is built
anew for each unit, because one that is kept would give the rows of its first run again. What is remembered is brought
up to date by the fold itself, which then meets an empty other side.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial, reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from freshet.kernels.allowance import allowance, check_rows
from freshet.kernels.folds.join import CompiledSide
from freshet.log.segment import read_train
from freshet.model import ARRIVAL, Side, State, Train, schema_text
from freshet.model.operators import FROM, UNTIL
from freshet.spark.failures import Retry
from freshet.spark.report import REPORT_COLUMNS, ChainReport
from freshet.spark.task import UNREADABLE, Task, drain

_BATCH_ROWS: Final = 65_536
_OWN, _OTHER = "own_", "other_"


def effort(train: Train, state: State | None, port: int) -> tuple[int, int]:
    """Rows and bytes that a join has to look at."""
    ranges = () if state is None else state.ranges
    rows = train.rows + (ranges[1 - port].rows if ranges else 0)
    return rows, _bytes(train) + sum(map(_bytes, ranges))


def _bytes(train: Train) -> int:
    return sum(segment.length for segment in train.segments)


def shuffled_plan(session: SparkSession, number: int, side: CompiledSide, port: int, tasks: int) -> DataFrame:
    """The plan of the pairs of one side of a join, for one unit."""
    own, other = (_prefixed(side.states[at], prefix) for at, prefix in ((port, _OWN), (1 - port, _OTHER)))
    fresh = session.range(0, tasks, 1, tasks).mapInArrow(partial(read_fresh, number), schema_text(own))
    known = session.range(0, tasks, 1, tasks).mapInArrow(partial(read_known, number), schema_text(other))
    equal = [F.col(_OWN + key) == F.col(_OTHER + key) for key in side.key_names]
    together = [F.col(_OWN + FROM) < F.col(_OTHER + UNTIL), F.col(_OTHER + FROM) < F.col(_OWN + UNTIL)]
    pairs = fresh.join(known.hint("merge"), reduce(Column.__and__, [*equal, *together]))
    chosen = [F.col((_OWN if at == port else _OTHER) + column).alias(name) for name, at, column in side.given]
    times = [
        choose(_OWN + name, _OTHER + name).alias(name)
        for name, choose in ((FROM, F.greatest), (UNTIL, F.least), (ARRIVAL, F.greatest))
    ]
    return pairs.select(*chosen, *times).mapInArrow(partial(write_pairs, number), REPORT_COLUMNS)


def read_fresh(number: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """This task's part of the train, as the join remembers tuples."""
    drain(batches)
    task = Task.begin()
    table = task.read(task.train(task.assignment.works[0].train), task.spec.reads[number])
    yield from _batches(_side(task, number).fresh(table), _OWN)


def read_known(number: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """This task's part of what is remembered of the other side."""
    drain(batches)
    task = Task.begin()
    (state,) = task.assignment.states
    if state.ranges:
        side, operator = _side(task, number), task.spec.operators[number]
        assert isinstance(operator, Side)
        part = task.train(state.ranges[1 - operator.port])
        try:
            table = read_train(task.assignment.segments, part, side.states[1 - operator.port])
        except OSError as error:
            raise Retry(f"the state of {state.fold} {UNREADABLE}: {error}") from error
        yield from _batches(table, _OTHER)


def write_pairs(number: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The pairs of this task's keys, into its file."""
    began = time.perf_counter_ns()
    task = Task.begin()
    (work,) = task.assignment.works
    (chain,) = work.chains
    ranges = (each for state in task.assignment.states for each in state.ranges)
    with allowance(work.train.rows + sum(each.rows for each in ranges), task.spec.rows_out):
        received = _received(batches)
    schema = _side(task, number).whole
    rows = sum(batch.num_rows for batch in received)
    report = ChainReport(0, 0, None, (rows,), (time.perf_counter_ns() - began,))
    if rows:
        found = pa.Table.from_batches(received)
        columns = [found.column(place).cast(field.type) for place, field in enumerate(schema)]
        task.add(chain, pa.Table.from_arrays(columns, schema=schema), report)
    else:
        task.note(report)
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


def _side(task: Task, number: int) -> CompiledSide:
    operator = task.spec.operators[number]
    assert isinstance(operator, Side)
    return compiled_side(operator, task.spec.reads[number], task.spec.others[number])


@lru_cache(maxsize=64)
def compiled_side(operator: Side, schema: pa.Schema, other: pa.Schema) -> CompiledSide:
    """A side of a join, compiled once."""
    return CompiledSide(operator, schema, other)


def without_other(states: Sequence[State], port: int) -> tuple[State, ...]:
    """States in which the other side remembers nothing, for the run that brings one side up to date."""
    return tuple(
        State(state.fold, tuple(_kept(each, place == port) for place, each in enumerate(state.ranges)), state.before,
              state.after)
        for state in states
    )  # fmt: skip


def _kept(each: Train, whole: bool) -> Train:
    return each if whole else Train(each.stream, each.end, each.end)
