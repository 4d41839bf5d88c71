"""The catalyst form: any Spark SQL. Python reads the train, the JVM evaluates all chains, Python writes the file.

``range(P) -> mapInArrow (train) -> select -> mapInArrow (file)``, without an exchange, built once per set of
chains. The select makes three columns per chain: the *stage* (how many of its filters let the tuple pass, in
order), the evaluation errors, and the output columns as a struct that is NULL where the tuple was filtered out. If the
chain calls functions of the user's own, another column has what they raised, behind the columns of all chains. So
a tree of chains is one pass over one train, and the selectivity of each filter is seen although Spark merges them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from freshet.model import ARRIVAL, Chain, Operator, schema_text
from freshet.model.schema import with_arrival
from freshet.spark.driver.expressions import ChainSql
from freshet.spark.worker.functions import register_functions
from freshet.spark.worker.report import REPORT_COLUMNS, ChainReport
from freshet.spark.worker.task import Task, drain

BEGAN: Final = "__began"
# Three processes work on a train at once, each on another batch.
_BATCH_ROWS: Final = 65_536


def catalyst_plan(
    session: SparkSession,
    chains: Sequence[tuple[Operator, ...]],
    schema: pa.Schema,
    outputs: Sequence[pa.Schema],
    parts: int,
) -> DataFrame:
    """The plan of chains over trains of one schema, each with the columns that it writes, for a number of tasks."""
    texts = [ChainSql.of(chain, schema.names) for chain in chains]
    register_functions(session, " ".join(text.all_text() for text in texts))
    used = {name for text in texts for name in text.columns_used(schema.names)}
    columns = [name for name in schema.names if name in used]
    leaf = pa.schema([schema.field(name) for name in columns])
    ddl = ", ".join(filter(None, [schema_text(leaf), f"`{ARRIVAL}` bigint, `{BEGAN}` bigint"]))
    train = session.range(0, parts, 1, parts).mapInArrow(partial(read_leaf, tuple(columns)), ddl)
    # Two selects, or Spark would evaluate each predicate for each of the three columns. It does not merge them,
    # because the stage is used more than once.
    staged = train.select("*", *(F.expr(text.stage()).alias(f"__stage_{i}") for i, text in enumerate(texts)))
    columns_out = [column for i, text in enumerate(texts) for column in _columns(i, text)]
    raised = {i: expression for i, text in enumerate(texts) if (expression := text.raised(f"__stage_{i}")) is not None}
    told = [F.expr(expression).alias(f"__raised_{i}") for i, expression in raised.items()]
    write = partial(write_outputs, tuple(with_arrival(output) for output in outputs), tuple(raised))
    return staged.select(ARRIVAL, BEGAN, *columns_out, *told).mapInArrow(write, REPORT_COLUMNS)


def _columns(number: int, text: ChainSql) -> tuple[Column, Column, Column]:
    stage = f"__stage_{number}"
    errors = F.expr(text.errors(stage)).cast("int").alias(f"__errors_{number}")
    fields = [F.expr(expression).alias(f"c{i}") for i, (_, expression) in enumerate(text.columns)]
    # A struct of NULLs is a tuple that passed; only a struct that is itself NULL was filtered out.
    output = F.when(F.col(stage) == len(text.predicates), F.struct(*fields)).alias(f"__output_{number}")
    return F.col(stage), errors, output


def read_leaf(columns: tuple[str, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The leaf: this task's part of the train."""
    drain(batches)
    task = Task.begin()
    train = task.train(task.assignment.chains[0].trains[0])
    if not train.rows:
        return
    table = task.read(train).select([*columns, ARRIVAL])
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        # The host's clock: the writer is another process, and measures how long the tuples were on the way.
        began = pa.repeat(pa.scalar(time.monotonic_ns(), pa.int64()), batch.num_rows)
        yield batch.append_column(BEGAN, began)


def write_outputs(
    schemas: tuple[pa.Schema, ...], raising: tuple[int, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The writer: splits the select's columns by chain and writes the file. Chains that are ``raising`` have a column
    of what they raised."""
    received = list(batches)
    ended = time.monotonic_ns()
    task = Task.begin()
    chains = task.assignment.chains
    began = min((batch.column(1)[0].as_py() for batch in received if batch.num_rows), default=ended)
    counts = [_passed(task, chain, received, 2 + 3 * i) for i, chain in enumerate(chains)]
    train = task.train(chains[0].trains[0])
    rows = train.rows if train.keep is None else sum(batch.num_rows for batch in received)
    if train.keep is not None and train.keep.value is not None:
        task.read(train)  # the leaf is another process, and cannot report what the tuples are worth
    nanos = _shares(ended - began, rows, counts)
    for i in range(len(chains)):
        errors = sum(pc.sum(batch.column(3 + 3 * i)).as_py() or 0 for batch in received)
        told = _first(received, 2 + 3 * len(chains) + raising.index(i)) if errors and i in raising else ""
        entered = (rows,) if train.keep else ()
        report = ChainReport(i, None, counts[i], nanos[i], (), errors, None, entered, raised=told)
        task.add(report, _output(received, 4 + 3 * i, schemas[i]))
    yield task.finish()


def _first(batches: Sequence[pa.RecordBatch], column: int) -> str:
    """The first text of a column; empty: there is none."""
    found = (pc.drop_null(batch.column(column)) for batch in batches)
    return next((str(texts[0]) for texts in found if len(texts)), "")


def _passed(task: Task, chain: Chain, batches: Sequence[pa.RecordBatch], column: int) -> tuple[int, ...]:
    """Rows that came out of each operator: those whose stage is at least the number of filters up to it."""
    stages = np.concatenate([batch.column(column).to_numpy() for batch in batches] or [np.empty(0, np.int32)])
    needed = np.cumsum([operator.keeps is not None for operator in task.spec.chain(chain.nodes)])
    histogram = np.bincount(stages, minlength=int(needed[-1]) + 1)
    at_least = np.cumsum(histogram[::-1])[::-1]
    return tuple(int(at_least[stage]) for stage in needed)


def _shares(nanos: int, rows: int, counts: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The time of the whole select, divided among operators by the tuples that each had to look at.

    The JVM compiles all operators into one loop; nothing finer can be seen without slowing it down.
    """
    looked = [(rows, *passed[:-1]) for passed in counts]
    total = sum(map(sum, looked)) or 1
    return [tuple(nanos * share // total for share in shares) for shares in looked]


def _output(batches: Sequence[pa.RecordBatch], column: int, schema: pa.Schema) -> pa.Table | None:
    """The tuples that passed, with the names and types that were declared for them."""
    parts = []
    for batch in batches:
        structs = batch.column(column)
        mask = structs.is_valid()
        passed = structs.filter(mask)
        if len(passed):
            arrays = [*passed.flatten(), batch.column(0).filter(mask)]
            typed = [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)]
            parts.append(pa.RecordBatch.from_arrays(typed, schema=schema))
    return pa.Table.from_batches(parts).combine_chunks() if parts else None
