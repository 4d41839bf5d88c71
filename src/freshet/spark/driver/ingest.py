"""Streaming sources of Spark: the tasks that read the rows of a micro-batch write them to segment files."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext, TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from freshet.log.segments.lines import json_line
from freshet.log.segments.segment import SegmentWriter
from freshet.model import ARRIVAL, FreshetError, SegmentFile, Stream, UserError
from freshet.model.operators import latest
from freshet.model.schema import type_text
from freshet.spark.driver.failures import message
from freshet.spark.session.session import open_session
from freshet.spark.worker.report import REPORT_COLUMNS, rows_of

__all__ = ["Ingested", "Judge", "Reading", "StreamingQuery", "checkpoint_id", "ingest", "start_reading", "why_ended"]

_ROW: Final = "__row"
_FILE_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class Reading:
    """What is to be read.

    Args:
        format: As in ``spark.readStream.format``.
        options: Its options.
        schema: Its columns as DDL, where the format needs them; None: the format knows them.
        columns: Expressions over the columns of the source; a column of the stream without one has the same name there.
        interval: Seconds between batches; None: read everything that is there, and end.
    """

    format: str
    options: Mapping[str, str]
    schema: str | None
    columns: Mapping[str, str]
    interval: float | None


@dataclass(frozen=True, slots=True)
class Judge:
    """What a task must know to write the rows of a batch.

    Args:
        folder: The log's folder of segments.
        name: A prefix for the names of the files of this batch, and of no others.
        stream: The stream.
        arrival: When the rows arrive, in microseconds.
        newest: Newest event time before this batch.
        bar: Rows with an earlier event time are late.
    """

    folder: Path
    name: str
    stream: Stream
    arrival: int
    newest: int | None
    bar: int | None


@dataclass(slots=True)
class Ingested:
    """What became of a batch."""

    files: list[SegmentFile] = field(default_factory=list)
    newest: int | None = None
    dead: list[dict[str, Any]] = field(default_factory=list)
    late: list[dict[str, Any]] = field(default_factory=list)


def knows_format(session: SparkSession, format_: str) -> bool:
    """Whether Spark has a source of this format, built in or from a package."""
    jvm: Any = session._jvm
    java = session._jsparkSession
    try:
        jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(format_, java.sessionState().conf())
    except (PySparkException, Py4JJavaError) as error:
        return not re.search("DATA_SOURCE_NOT_(?:FOUND|ENABLED)", str(error))
    return True


def start_reading(
    reading: Reading, stream: Stream, checkpoint: Path, handle: Callable[[DataFrame, int], None]
) -> StreamingQuery:
    """Starts a streaming query that hands every micro-batch, with the stream's columns, to ``handle``.

    Raises:
        UserError: Spark does not know the format, or refuses its options or an expression.
        FreshetError: There is no Spark in this process.
    """
    if SparkContext._active_spark_context is None:
        raise FreshetError("a source of kind spark needs a Spark that runs")
    # It would print the trace of every error of the handler, even if that only means that the run ends.
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL + 1)
    # A separate session, so that the settings of the source do not concern the queries.
    session = open_session("freshet source")
    try:
        reader = session.readStream.format(reading.format).options(**reading.options)
        frame = (reader if reading.schema is None else reader.schema(reading.schema)).load()
        writer = frame.selectExpr(*cast_expressions(reading, stream)).writeStream.foreachBatch(handle)
        writer = writer.option("checkpointLocation", str(checkpoint)).queryName(f"source of {stream.name}")
        if reading.interval is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{round(reading.interval * 1000)} milliseconds").start()
    except PySparkException as error:
        raise UserError(f"Spark refuses it: {message(error)}") from None
    except Py4JJavaError as error:
        # PySpark has no exception for some errors, such as an unknown format.
        raise UserError(f"Spark refuses it: {message(RuntimeError(error.java_exception.getMessage()))}") from None


def cast_expressions(reading: Reading, stream: Stream) -> list[str]:
    """The stream's columns as Spark's try_cast gives them, and the whole row as it came if it has no event time."""
    given = {name: reading.columns.get(name, f"`{name}`") for name in stream.schema.names}
    casts = {name: f"try_cast({given[name]} AS {type_text(stream.schema.field(name).type)})" for name in given}
    chosen = [f"{cast} AS `{name}`" for name, cast in casts.items()]
    if stream.event_time is not None:
        chosen.append(f"CASE WHEN {casts[stream.event_time]} IS NULL THEN to_json(struct(*)) END AS {_ROW}")
    return chosen


def checkpoint_id(checkpoint: Path) -> str | None:
    """Spark's name of the progress that a checkpoint holds; None if there is none."""
    try:
        return str(json.loads((checkpoint / "metadata").read_text())["id"])
    except FileNotFoundError:
        return None


def why_ended(query: StreamingQuery) -> str | None:
    """Why a streaming query has failed; None if it has not failed."""
    error = query.exception()
    # Behind this line Spark prints the plan.
    return None if error is None else message(RuntimeError(str(error).partition("=== Streaming Query ===")[0]))


def ingest(frame: DataFrame, judge: Judge) -> Ingested:
    """Writes the rows of a micro-batch to segment files, in its tasks; rows set aside come to the driver."""
    parts = [part for (part,) in json.loads(rows_of(frame.mapInArrow(partial(_write, judge), REPORT_COLUMNS)))]
    done = Ingested()
    for part in sorted(parts, key=lambda part: part["part"]):
        done.files += [SegmentFile(name, size, tuple(map(tuple, members))) for name, size, members in part["files"]]
        done.dead += part["dead"]
        done.late += part["late"]
        done.newest = latest(done.newest, part["newest"])
    return done


def _write(judge: Judge, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None
    part = Part(judge, context.partitionId(), context.taskAttemptId())
    for batch in batches:
        part.take(pa.Table.from_batches([batch]))
    yield pa.RecordBatch.from_arrays([pa.array([json.dumps(part.finish())])], names=["report"])


class Part:
    """Judges the rows of one task of a batch, and writes them to files whose names carry the attempt."""

    def __init__(self, judge: Judge, part: int, attempt: int) -> None:
        self._judge, self._part = judge, part
        self._name = f"{judge.name}-{part}-{attempt}"
        self._held: list[pa.Table] = []
        self._files: list[SegmentFile] = []
        self._newest: int | None = None
        self._aside: dict[str, list[dict[str, Any]]] = {"dead": [], "late": []}

    def take(self, rows: pa.Table) -> None:
        """Takes rows in."""
        schema, event_time = self._judge.stream.schema, self._judge.stream.event_time
        table = rows.select(schema.names).cast(schema)
        if event_time is not None:
            table = table.filter(pa.array(self._judged(table, table.column(event_time), rows.column(_ROW))))
            self._newest = latest(self._newest, pc.max(table.column(event_time).cast(pa.int64())).as_py())
        if table.num_rows:
            self._held.append(table.append_column(ARRIVAL, pa.array(np.full(len(table), self._judge.arrival))))
        if sum(held.nbytes for held in self._held) >= _FILE_BYTES:
            self._write()

    def _judged(self, table: pa.Table, times: pa.ChunkedArray, rows: pa.ChunkedArray) -> Any:
        """Which rows are neither dead nor late; the others are set aside."""
        missing = times.is_null().to_numpy()
        micros = times.cast(pa.int64()).fill_null(0).to_numpy()
        late = np.zeros(len(micros), bool) if self._judge.bar is None else ~missing & (micros < self._judge.bar)
        stream = self._judge.stream
        reason = f"column {stream.event_time}: the event time is NULL"
        for place in np.flatnonzero(missing):
            self._set_aside("dead", reason, json.loads(rows[int(place)].as_py()))
        newest = self._judge.newest
        for place in np.flatnonzero(late):
            reason = f"the lateness is {stream.lateness:g} s"
            if newest is not None:
                reason = f"{(newest - int(micros[place])) / 1e6:g} s behind the newest event time; {reason}"
            [row] = table.slice(int(place), 1).to_pylist()
            self._set_aside("late", reason, json.loads(json_line(row)))
        return ~(missing | late)

    def _set_aside(self, kind: str, reason: str, row: Any) -> None:
        self._aside[kind].append({"arrival": self._judge.arrival, "reason": reason, "row": row})

    def _write(self) -> None:
        if self._held:
            writer = SegmentWriter(self._judge.folder, f"{self._name}-{len(self._files)}")
            writer.add(self._judge.stream.name, pa.concat_tables(self._held))
            self._files.append(writer.finish())
            self._held = []

    def finish(self) -> dict[str, Any]:
        """Makes the last file durable; returns the report to the driver, ready for JSON."""
        self._write()
        files = [(file.name, file.bytes, file.members) for file in self._files]
        return {"part": self._part, "files": files, "newest": self._newest, **self._aside}
