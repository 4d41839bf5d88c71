"""Any streaming source that Spark has."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
from pydantic import Field

from freshet.log import stamped
from freshet.model import FreshetError, Stream, UserError, parse_schema
from freshet.sources.options import Duration, Options
from freshet.sources.source import Batch, Written

if TYPE_CHECKING:
    from freshet.log import Intake, Log
    from freshet.spark.driver.ingest import StreamingQuery

_LOOK: Final = 0.25
"""Seconds between two checks whether the streaming query is alive, and whether the log has room."""


class SparkOptions(Options):
    """Options of the source kind ``spark``.

    Args:
        format: As in ``spark.readStream.format``: ``"rate"``, ``"json"``, ``"kafka"``, ``"delta"``.
        options: The options of the format.
        schema: Columns of the source as Spark DDL, for formats that need them.
        columns: For columns of the stream, a Spark SQL expression over the columns of the source; by default the column
            of the same name.
        interval: Time between micro-batches.
        follow: Whether it waits for more; otherwise it ends with what is there.
    """

    format: str = Field(min_length=1)
    options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    declared: str | None = Field(default=None, alias="schema")
    columns: dict[str, str] = Field(default_factory=dict)
    interval: Annotated[Duration, Field(gt=0)] = 0.5
    follow: bool = True


class SparkSource:
    """Reads by a streaming query of Spark. The tasks of a micro-batch write segment files. The transaction that takes
    these files into the log also stores the number of the batch. After a crash Spark runs its last batch again; if the
    log already has it, it is left out.

    Spark keeps its own progress in ``sources/STREAM`` in the state folder. The position says to which progress a
    batch's number belongs.
    """

    def __init__(self, options: SparkOptions, stream: Stream) -> None:
        for name in options.columns:
            if name not in stream.schema.names:
                raise UserError(f"columns.{name} is not a column of stream {stream.name}")
        if options.declared is not None:
            parse_schema(options.declared)
        self._options, self._stream = options, stream
        self._position: dict[str, Any] | None = None
        self._log: Log | None = None
        self._intake: Intake | None = None
        self._query: StreamingQuery | None = None
        self._identity = ""
        self._look_at = 0.0
        self._attempts = 0
        # One batch at a time passes from Spark's thread to the feeder's.
        self._changed = threading.Condition()
        self._begun = threading.Event()
        self._closed = threading.Event()
        self._writing = False
        self._handed: Batch | None = None
        self._given: int | None = None
        self._last = -1
        self._ended = False
        self._failure: Exception | None = None

    def connect(self, log: Log, intake: Intake) -> None:
        """Sets where rows go."""
        self._log, self._intake = log, intake

    def restore(self, position: Mapping[str, Any]) -> None:
        self._position = dict(position)
        self._last = int(position["batch"])

    def poll(self, now: float) -> Batch | None:
        if self._query is None and not self._ended:
            self._begin()
        with self._changed:
            if self._given is not None:
                # The next poll means that the last batch is durable.
                self._last, self._given = self._given, None
                self._changed.notify_all()
            if self._handed is not None:
                batch, self._handed = self._handed, None
                self._given = batch.position["batch"]
                return batch
        if now >= self._look_at:
            self._look_at = now + _LOOK
            self._check()
        return None

    def next_due(self) -> float | None:
        with self._changed:
            if self._ended:
                return None
            # Rows that are being written arrive before anything that is reported now.
            return 0.0 if self._writing or self._handed is not None else math.inf

    def close(self) -> None:
        with self._changed:
            self._closed.set()
            self._changed.notify_all()
        self._begun.set()
        if self._query is not None:
            with suppress(Exception):  # Spark itself may have ended
                self._query.stop()

    def _begin(self) -> None:
        from freshet.spark.driver.ingest import Reading, checkpoint_id, start_reading

        checkpoint = self._checkpoint()
        known = checkpoint_id(checkpoint)
        if self._position is not None and known != self._position["query"]:
            raise FreshetError(
                f"{checkpoint} is not the progress that stream {self._stream.name} has come from: nobody could tell "
                "which rows are new; put it back, or begin with a new state folder"
            )
        options = self._options
        texts = {key: str(value).lower() if isinstance(value, bool) else str(value)
                 for key, value in options.options.items()}  # fmt: skip
        reading = Reading(
            options.format, texts, options.declared, options.columns, options.interval if options.follow else None
        )
        self._query = start_reading(reading, self._stream, checkpoint, self._handle)
        self._identity = str(self._query.id)
        self._begun.set()

    def _checkpoint(self) -> Path:
        if self._log is None:
            raise FreshetError("a source of kind spark must be connected to a log")
        return self._log.folder.parent.absolute() / "sources" / self._stream.name

    def _check(self) -> None:
        from freshet.spark.driver.failures import message
        from freshet.spark.driver.ingest import why_ended

        query = self._query
        if query is None or query.isActive:
            return
        why = why_ended(query) if self._failure is None else message(self._failure)
        if why is not None:
            raise FreshetError(f"the streaming query of stream {self._stream.name} failed: {why}")
        with self._changed:
            self._ended = self._handed is None and self._given is None

    def _handle(self, frame: Any, batch: int) -> None:
        """Called by Spark for every micro-batch, on a thread of its own. When it returns, Spark counts the batch as
        done, so it returns only when the log has the batch."""
        self._begun.wait()
        if batch <= self._last:
            return
        with self._changed:
            self._writing = True
        try:
            written = self._written(frame, batch)
            with self._changed:
                position = {"batch": batch, "query": self._identity}
                self._handed = Batch(written, np.empty(0, np.int64), position, more=True)
                self._changed.wait_for(lambda: self._last >= batch or self._closed.is_set())
                if self._last < batch:
                    raise FreshetError("the application is stopping")
        except Exception as error:
            self._failure = error
            raise
        finally:
            with self._changed:
                self._writing = False

    def _written(self, frame: Any, batch: int) -> Written:
        from freshet.spark.driver.ingest import Judge, ingest

        log, intake, name = self._log, self._intake, self._stream.name
        assert log is not None
        assert intake is not None
        while log.held_back(name) is not None and not self._closed.is_set():
            self._closed.wait(_LOOK)
        if self._closed.is_set():
            raise FreshetError("the application is stopping")
        self._attempts += 1
        prefix = stamped(f"source-{name}-{log.epoch}-{batch}-{self._attempts}", log.commits)
        arrival = max(round(time.time() * 1e6), log.last_arrival(name))
        done = ingest(frame, Judge(log.folder.absolute(), prefix, self._stream, arrival, log.newest(name), intake.bar))
        return Written(tuple(done.files), done.newest, tuple(done.dead), tuple(done.late))


KINDS: Final = {"spark": (SparkOptions, SparkSource)}
