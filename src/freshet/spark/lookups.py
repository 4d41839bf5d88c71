"""The tables that chains join with, in a task."""

from __future__ import annotations

import pyarrow as pa

from freshet.log import StoredVersion
from freshet.model import Chain, version_stream
from freshet.spark.failures import Retry
from freshet.spark.task import UNREADABLE, Task


class TaskVersion(StoredVersion):
    """A version as a task reads it: where its file cannot be read, the unit is to run again."""

    __slots__ = ()

    def read(self) -> pa.Table:
        try:
            return StoredVersion.read(self)
        except OSError as error:
            raise Retry(f"a version of {self.segment.stream} {UNREADABLE}: {error}") from error


def tables_of(task: Task, chain: Chain) -> dict[str, list[TaskVersion]]:
    """What is kept of the tables that a chain joins with."""
    kept = {train.stream: train.segments for train in task.assignment.tables}
    operators = task.spec.chain(chain.operators)
    tables = {operator.reads_table for operator in operators if operator.reads_table is not None}
    folder = task.assignment.segments
    return {table: [TaskVersion(folder, each) for each in kept[version_stream(table)]] for table in tables}
