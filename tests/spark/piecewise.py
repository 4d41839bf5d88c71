"""Queries that are fed piece by piece, over two starts, and what they give out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from freshet.engine import Engine, LogQueues, RealClock
from freshet.log import Intake, Log, Retention
from freshet.model import Stream
from freshet.model.join_buffer import JoinBuffer, with_buffer
from freshet.policies import Everything
from freshet.spark.driver.executor import SparkExecutor
from freshet.sql import build_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Answers = dict[str, Counter[tuple[Any, ...]]]


def answers(
    session: SparkSession,
    state: Path,
    streams: Mapping[str, Stream],
    queries: Mapping[str, str],
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    buffer: JoinBuffer = "auto",
    **options: Any,
) -> Answers:
    """The rows of each query, after half of all rows have come before a restart and half behind it."""
    found: Answers = {}
    for half in range(2):
        clock = RealClock()
        executor = SparkExecutor(session, state, clock=clock, **options)
        with Log.open(state) as log:
            queues = LogQueues(log)
            engine = Engine(queues, executor, clock, Everything())
            for name, stream in streams.items():
                log.declare(name, Retention(), clock="ts", ordered=stream.ordered_by)
            ordered = {name: key for name, stream in streams.items() if (key := stream.ordered_by) is not None}
            schemas = {name: stream.schema for name, stream in streams.items()}
            for name, sql in queries.items():
                log.declare(name, Retention())
                times = dict.fromkeys(schemas, "ts")
                query = build_query(name, sql, schemas, times=times, ordered=ordered)
                engine.add_query(with_buffer(query, buffer), schemas)
            engine.stop(drain=True)
            for piece in range(2 * half, 2 * half + 2):
                for name, stream in streams.items():
                    count = len(rows[name])
                    quarter = list(rows[name])[piece * count // 4 : (piece + 1) * count // 4]
                    assert Intake(log, stream).append(quarter, round(time.time() * 1e6)).late == 0
                    queues.notice(name)
                engine.run()
                assert all(state.active for state in engine.board.queries), [s.reason for s in engine.board.queries]
            found = {
                name: Counter(tuple(list(row.values())[:-1]) for row in log.read(name, 0, log.end(name)).to_pylist())
                for name in queries
            }
        executor.close()
    return found
