"""Chains with lookups, and without folds, in a task: each task joins its own part of the train."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from freshet.kernels.pipeline import Pipeline
from freshet.log import StoredVersion
from freshet.model import Chain, Filter, Lookup, Project, Work, version_stream
from freshet.spark.failures import Retry
from freshet.spark.report import ChainReport
from freshet.spark.task import Task


class TaskVersion(StoredVersion):
    """A version as a task reads it: where its file cannot be read, the unit is to run again."""

    __slots__ = ()

    def read(self) -> pa.Table:
        try:
            return StoredVersion.read(self)
        except OSError as error:
            raise Retry(f"a version of {self.segment.stream} cannot be read: {error}") from error


def tables_of(task: Task, chain: Chain) -> dict[str, list[TaskVersion]]:
    """What is kept of the tables that a chain joins with."""
    kept = {train.stream: train.segments for train in task.assignment.tables}
    operators = task.spec.chain(chain.operators)
    tables = {operator.table for operator in operators if isinstance(operator, Lookup)}
    folder = task.assignment.segments
    return {table: [TaskVersion(folder, each) for each in kept[version_stream(table)]] for table in tables}


def run_lookup(task: Task, number: int, work: Work, index: int) -> None:
    """Runs the chain at a place of a work over this task's part of its train."""
    chain = work.chains[index]
    train, nothing = task.train(work.train), (0,) * len(chain.operators)
    if not train.rows:
        task.note(ChainReport(number, index, None, nothing, nothing))
        return
    try:
        schema = task.spec.reads[chain.operators[0]]
        operators: tuple[Filter | Project | Lookup, ...] = task.spec.chain(chain.operators)  # type: ignore[assignment]
        piped = _pipeline(operators, schema).run(task.read(train, schema), {}, tables_of(task, chain))
    except Retry:
        raise
    except Exception as error:  # whatever it is, it is this query's failure alone
        failure = f"{type(error).__name__}: {error}"
        task.note(ChainReport(number, index, None, nothing, nothing, failure=failure))
        return
    task.add(chain, piped.table, ChainReport(number, index, None, piped.passed, piped.nanos, (), piped.errors))


@lru_cache(maxsize=256)
def _pipeline(operators: tuple[Filter | Project | Lookup, ...], schema: pa.Schema) -> Pipeline:
    return Pipeline(operators, schema)
