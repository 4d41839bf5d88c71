"""The engine rig: a log, an executor on Spark and an engine, for benchmarks that bring the rows themselves."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa

from freshet.bench.rig.feed import Arrival, Chunk, feed
from freshet.bench.rig.notes import NotingClock, StepNote, StepNotes
from freshet.engine import Engine, LogQueues
from freshet.kernels.shuffling import MOST_BYTES
from freshet.log import Intake, Log, Retention
from freshet.model import ARRIVAL, Stream
from freshet.policies import Everything, Policy
from freshet.policies.periodic import PeriodicFirst
from freshet.policies.sharing import Mode, share
from freshet.spark.driver.executor import SparkExecutor
from freshet.spark.driver.residents.slots import residents_for
from freshet.spark.session.residency import ResidentSetting
from freshet.sql import build_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEEP: Final = Retention(history_age=None, history_bytes=None, bound_bytes=None)
"""Neither side of a comparison cleans up while it is measured."""
NO_HISTORY: Final = Retention(history_age=0.0, history_bytes=0, bound_bytes=None)


class EngineRig:
    """An engine over a log of its own; its state folder is deleted afterwards.

    Args:
        session: Where it runs.
        state: Its state folder.
        streams: What queries read.
        slots: Maximum number of units at once; the times of steps mean something only if it is one.
        most_rows: Maximum number of rows of a train.
        retention: Retention of streams and outputs.
        resident: How many residents, as an application declares it.
        part_overhead: Seconds that a second job takes, to judge whether an aggregate merges a train in parts; None: as
            measured.
        kept_bytes: Memory in which each worker keeps states.
        most_join_bytes: Maximum bytes that a join reads in one task, if they are not kept.
        periodic: Decides on instances of periodic queries; None: the earliest deadline first.
    """

    def __init__(
        self,
        session: SparkSession,
        state: Path,
        streams: Iterable[Stream],
        *,
        slots: int = 1,
        most_rows: int = 500_000,
        retention: Retention = KEEP,
        resident: ResidentSetting = "auto",
        part_overhead: float | None = None,
        kept_bytes: int = 2**30,
        most_join_bytes: int = MOST_BYTES,
        periodic: PeriodicFirst | None = None,
    ) -> None:
        self._clock = NotingClock()
        self._notes = StepNotes(self._clock)
        self._retention = retention
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, state, ignore_errors=True)
            self.log = stack.enter_context(Log.open(state))
            residents, _ = residents_for(session, resident, slots)
            self.executor = SparkExecutor(
                session,
                state,
                slots=slots,
                clock=self._clock,
                residents=residents,
                part_overhead=part_overhead,
                kept_bytes=kept_bytes,
                most_join_bytes=most_join_bytes,
            )
            stack.callback(self.executor.close)
            self.executor.warm_up(1)
            self._streams = {stream.name: stream for stream in streams}
            for name, stream in self._streams.items():
                clock = stream.event_time or (ARRIVAL if stream.ordered_by else None)
                self.log.declare(name, retention, clock=clock, ordered=stream.ordered_by)
            self._intakes = {name: Intake(self.log, stream) for name, stream in self._streams.items()}
            self.queues = LogQueues(self.log)
            self.engine = Engine(
                self.queues,
                self.executor,
                self._clock,
                Everything(),
                most_rows=most_rows,
                observers=[self._notes],
                periodic=periodic,
            )
            self._notes.board = self.engine.board
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the executor and closes the log."""
        self._stack.close()

    def add_queries(self, texts: Mapping[str, str], sharing: Mode = "never") -> None:
        """Starts queries at the beginning of their streams.

        Args:
            texts: SQL by name.
            sharing: Whether operators that they begin with in common run once for all.
        """
        schemas = {name: stream.schema for name, stream in self._streams.items()}
        times = {name: stream.event_time for name, stream in self._streams.items()}
        ordered = {name: stream.ordered_by for name, stream in self._streams.items() if stream.ordered_by is not None}
        queries = [build_query(name, text, schemas, times=times, ordered=ordered) for name, text in texts.items()]
        for query in share(queries, sharing):
            self.log.declare(query.name, self._retention)
            self.engine.add_query(query, schemas)

    def drop_query(self, name: str) -> None:
        """Ends a query and deletes what it wrote."""
        self.engine.drop_query(name)
        self.log.forget(name)
        self.log.collect()

    def append(self, chunk: Chunk, arrival: float | None = None) -> None:
        """Brings rows into the log as a source does: durably, as one segment for each stream. Any thread may call it.

        Args:
            chunk: The rows.
            arrival: When they arrived, in seconds since the epoch; None: now.
        """
        moment = round((time.time() if arrival is None else arrival) * 1e6)
        for name, rows in chunk.items():
            self._intakes[name].append(rows, moment)
            self.queues.notice(name)
        self._clock.wake()

    def work_off(self, policy: Policy | None = None) -> list[StepNote]:
        """Runs until nothing waits any more; returns the steps that ran."""
        if policy is not None:
            self.engine.set_policy(policy)
        self._notes.begin()
        self.engine.work_off()
        return self._notes.steps

    def play(
        self, arrivals: Iterable[Arrival], start: float, seconds: float, policy: Policy | None = None
    ) -> tuple[list[StepNote], list[float]]:
        """Runs for some seconds while rows come when they are due; what is left then continues to wait.

        Args:
            arrivals: What comes.
            start: When that begins, in seconds since the epoch.
            seconds: Seconds after which it ends.
            policy: The scheduler; None: as before.

        Returns:
            The committed steps, and for each arrival the seconds from due to durably in the log.
        """
        if policy is not None:
            self.engine.set_policy(policy)
        self._notes.begin()
        with ThreadPoolExecutor(1, "freshet-bench-feeder") as pool:
            lags = pool.submit(feed, arrivals, start, self.append)
            self.engine.run(until=start + seconds)
            return self._notes.steps, lags.result()

    def read(self, name: str, first: int = 0) -> pa.Table:
        """The rows of a stream or output from an offset on."""
        return self.log.read(name, first, self.log.end(name))
