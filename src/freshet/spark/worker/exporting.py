"""The task that writes ranges of the log as Parquet files, so that the driver need not read their rows.

Only the driver gives the files their names, after it has read the report. The hidden name carries the attempt, because
Spark may run a task twice and the loser may write after the job has succeeded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from freshet.log import Export, Exported, write_export
from freshet.log.segments.hidden import AnswerMark
from freshet.log.segments.segment import Mapped
from freshet.model import FreshetError
from freshet.model.messages import sentence
from freshet.spark.worker.assignment import told, train_fields, train_of
from freshet.spark.worker.report import REPORT_COLUMNS, contents, report_row
from freshet.spark.worker.task import drain, task_property

EXPORTS: Final = "freshet.exports"
"""The job-local property that tells tasks what to write."""
_AT_ONCE: Final = 8
"""Files that a task writes at the same time: most of the time it waits for the disk, and these waits overlap."""


def export_plan(session: SparkSession, parts: int) -> DataFrame:
    """The plan over a number of tasks; it is built once, like that of the vectorised form."""
    return session.range(0, parts, 1, parts).mapInArrow(run_exports, REPORT_COLUMNS)


def run_exports(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The task."""
    drain(batches)
    context, text = task_property(EXPORTS)
    state, name, parts, umask, orders = json.loads(told(text))
    part, attempt = context.partitionId(), context.taskAttemptId()
    write = partial(_written, Path(state) / "segments", attempt, {})
    # These files are for users: they get the permissions that the driver would give them, not those of a task's files.
    own = os.umask(umask)
    try:
        # Threads end with the task: the next one of this process may be any other.
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            found = list(threads.map(write, orders[part::parts]))
    finally:
        os.umask(own)
    report = Path(state) / "specs" / f"{name}-{part}-{attempt}.report"
    yield report_row(json.dumps([part, found], separators=(",", ":")), report, parts)


def _written(segments: Path, attempt: int, mapped: Mapped, order: list[Any]) -> list[str]:
    """The hidden file of an order and its schema, or the reason why there is none."""
    train, path, dispatch, arrival, marked = order
    marks = None if marked is None else tuple(AnswerMark(*each) for each in marked)
    export = Export(train_of(train), Path(path), (*dispatch, attempt), arrival, marks)
    try:
        made = write_export(segments, export, mapped)
    except Exception as error:
        return [sentence(error)]
    return [str(made.path), made.schema.serialize().to_pybytes().hex()]


def orders_text(state: Path, name: str, parts: int, umask: int, exports: Sequence[Export]) -> str:
    """What tasks are told."""
    orders = [[train_fields(each.train), str(each.path), each.dispatch, each.arrival, each.marks] for each in exports]
    return json.dumps([str(state), name, parts, umask, orders], separators=(",", ":"))


def read_exports(rows: str, parts: int, count: int) -> list[Exported | Exception]:
    """What the tasks of a job made of ``count`` orders, in their order."""
    made: list[Exported | Exception] = [FreshetError("no task has written it")] * count
    for part, found in contents(rows):
        made[part::parts] = map(_made, found)
    return made


def _made(found: list[str]) -> Exported | Exception:
    if len(found) == 1:
        return FreshetError(found[0])
    path, schema = found
    return Exported(Path(path), pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(schema))))
