"""An engine over a log of its own, for benchmarks that bring the rows themselves."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from freshet.bench.windows.load import LATENESS
from freshet.engine import Engine, LogQueues, RealClock
from freshet.log import Intake, Log, Retention
from freshet.model import Stream, parse_schema
from freshet.policies import Everything
from freshet.spark.driver.executor import SparkExecutor
from freshet.sql import build_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Chunk = Mapping[str, pa.Table]
"""Rows by stream."""


@dataclass(frozen=True, slots=True)
class EngineRig:
    """An engine that works all off that waits, under the policy ``everything``.

    Args:
        engine: It.
        queues: Its log as it sees it.
        log: The log.
        feed: Appends rows and says so.
    """

    engine: Engine
    queues: LogQueues
    log: Log
    feed: Callable[[Chunk], None]


@contextmanager
def engine_rig(
    session: SparkSession,
    state: Path,
    streams: Mapping[str, str],
    queries: Mapping[str, str],
    most_rows: int = 500_000,
) -> Iterator[EngineRig]:
    """Opens a log and an engine; both are gone afterwards.

    Args:
        session: Where it runs.
        state: Its state folder.
        streams: Schemas by stream; each has the event time ``ts``.
        queries: Texts by name.
        most_rows: Rows of a train.
    """
    clock = RealClock()
    log = Log.open(state)
    executor = SparkExecutor(session, state, slots=2, wake=clock.wake)
    try:
        declared = {
            name: Stream(name, parse_schema(text), event_time="ts", lateness=LATENESS) for name, text in streams.items()
        }
        schemas = {name: stream.schema for name, stream in declared.items()}
        queues = LogQueues(log)
        engine = Engine(queues, executor, clock, Everything(), most_rows=most_rows)
        for name in (*streams, *queries):
            log.declare(name, Retention(None, None, None), clock="ts" if name in streams else None)
        for name, text in queries.items():
            engine.add_query(build_query(name, text, schemas, times=dict.fromkeys(schemas, "ts")), schemas)
        intakes = {name: Intake(log, stream) for name, stream in declared.items()}

        def feed(chunk: Chunk) -> None:
            for name, rows in chunk.items():
                intakes[name].append(rows, round(time.time() * 1e6))
                queues.notice(name)
            clock.wake()

        yield EngineRig(engine, queues, log, feed)
    finally:
        executor.close()
        log.close()
        shutil.rmtree(state, ignore_errors=True)
