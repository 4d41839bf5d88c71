"""The rig of ``freshet bench freshness`` and ``qos``: one engine on Spark that plays the same arrivals under each
policy."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from freshet.bench.freshness.load import SUFFIXES, Event
from freshet.bench.freshness.queries import SCHEMA, Question, make_rows
from freshet.engine import Engine, LogQueues, RealClock, events
from freshet.log import Log, Retention
from freshet.model import ARRIVAL, Curve, OperatorRun, Promises, UnitResult, parse_schema
from freshet.policies import Everything, Policy
from freshet.quality.qos import Qos, overall
from freshet.spark.driver.executor import SparkExecutor
from freshet.sql import build_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS: int = 4_000_000
"""Rows that a train may have: none is cut."""
_LEAD: float = 0.2
"""Seconds from the start of the feeder to the first arrival."""


@dataclass(frozen=True, slots=True)
class StepNote:
    """One step: seconds from the moment the engine could begin it to the end of its commit, and what it did."""

    seconds: float
    work: float
    """Seconds in operators, on the clock of a wall."""
    members: int
    runs: tuple[tuple[str, OperatorRun], ...]
    """What the operators did, by name."""

    @property
    def overhead(self) -> float:
        """All that is not work: deciding, planning, Spark's job, the file, the commit."""
        return self.seconds - self.work

    @property
    def rows_in(self) -> int:
        """Rows that its queries read."""
        return sum(run.rows_in for name, run in self.runs if name.endswith(SUFFIXES[0]))

    @property
    def rows_out(self) -> int:
        """Rows that its queries wrote."""
        return sum(run.rows_out for name, run in self.runs if name.endswith(SUFFIXES[-1]))


@dataclass(slots=True)
class Notes:
    """When the engine's loop passed which point; the steps that it has made."""

    free: float = 0.0
    """Since when the engine could begin a step: the end of a commit or of a wait."""
    began: float = 0.0
    running: bool = False
    steps: list[StepNote] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Names of the operators, by number."""

    def tell(self, event: events.Event) -> None:
        """Notes a point."""
        match event:
            case events.Submitted():
                self.began, self.running = self.free, True
            case events.Returned(result=result) if result.retry is not None:
                raise RuntimeError(f"a step could not run: {result.retry}")
            case events.Committed(result=result):
                self._note(result, time.perf_counter())

    def _note(self, result: UnitResult, now: float) -> None:
        """Ends a step."""
        runs = [run for chain in result.chains for run in chain.operators]
        seconds = sum(run.seconds for run in runs)
        work = max(0.0, result.finished - result.started - result.overhead)
        # Tasks side by side: their seconds count by what they took of the time that passed.
        share = work / seconds if seconds else 1.0
        noted = tuple(
            (self.names[run.operator], OperatorRun(run.operator, run.rows_in, run.rows_out, run.seconds * share))
            for run in runs
        )
        self.steps.append(StepNote(now - self.began, work, len(result.chains), noted))
        self.running, self.free = False, now

    def open_step(self) -> float:
        """Seconds of the step that is going on, 0 where none is."""
        return time.perf_counter() - self.began if self.running else 0.0


class _Clock(RealClock):
    """Notes when a wait ends."""

    notes: Notes

    def wait(self, until: float | None) -> bool:
        waited = super().wait(until)
        self.notes.free = time.perf_counter()
        return waited


@dataclass(frozen=True, slots=True)
class Played:
    """What a run gave.

    Args:
        staleness: 1 - F of each query over the observation period.
        steps: Those that began in it.
        busy: Share of the period in which a step was going on.
        lags: Seconds from the time at which rows were due to when they were durably in the log, by arrival.
        qos: Utility of all answers to what came in it, by the queries' latency curves; 1 where they have none.
    """

    staleness: dict[str, float]
    steps: list[StepNote]
    busy: float
    lags: list[float]
    qos: Qos

    @property
    def mean(self) -> float:
        """Mean staleness over the queries (FAS Eq. 3)."""
        return sum(self.staleness.values()) / len(self.staleness)


class Rig:
    """Queries on Spark, one step at a time, over streams to which a feeder appends rows when they are due.

    Args:
        session: Where it runs.
        state: Its state folder.
        questions: The queries.
    """

    def __init__(self, session: SparkSession, state: Path, questions: Sequence[Question]) -> None:
        self.streams = tuple(dict.fromkeys(each.stream for each in questions))
        self.log = Log.open(state)
        self._clock = _Clock()
        self._notes = self._clock.notes = Notes()
        self._executor = SparkExecutor(session, state, slots=1, wake=self._clock.wake)
        self._queues = LogQueues(self.log)
        self._engine = Engine(
            self._queues, self._executor, self._clock, Everything(), most_rows=_ROWS, observers=[self._notes]
        )
        self._pool = make_rows(1, seed=0)
        schema = parse_schema(SCHEMA)
        for stream in self.streams:
            self.log.declare(stream, _NO_HISTORY)
        for each in questions:
            self.log.declare(each.name, _NO_HISTORY)
            self._engine.add_query(build_query(each.name, each.sql, {each.stream: schema}), {each.stream: schema})
            self._check_form(each.name)
        self._notes.names = [operator.node.name for operator in self._engine.board.operators]

    def _check_form(self, query: str) -> None:
        form, why = self._executor.form(self._engine.board.network.of(query))
        if form != "vectorised":
            raise RuntimeError(f"query {query} is not vectorised: {why}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.close()
        self.log.close()

    def set_curves(self, curves: Mapping[str, Curve]) -> None:
        """What the answers of queries are worth by their latency from now on."""
        for name, curve in curves.items():
            self._engine.set_promises(name, Promises(curve=curve))

    def play(self, policy: Policy, events: Sequence[Event], seconds: float, *, settle: Policy | None = None) -> Played:
        """Runs a policy over arrivals for so many seconds; works off what is left before it returns.

        Args:
            policy: The scheduler.
            events: The arrivals.
            seconds: Of the observation.
            settle: The scheduler that works off what is left; by default all at once.
        """
        self.log.collect()
        tables = self._tables(events)
        self._engine.set_policy(policy)
        start = time.time() + _LEAD
        self._measure_from(start)
        self._notes.steps = []
        feeder = _Feeder(self._queues, self._clock, start, list(zip(events, tables, strict=True)))
        feeder.start()
        # The moment at which the observation ends is the same for all; what runs then departs after it.
        self._engine.run(until=start + seconds)
        ended, running = len(self._notes.steps), self._notes.running
        busy = (sum(step.seconds for step in self._notes.steps) + self._notes.open_step()) / seconds
        feeder.finish()
        if settle is not policy:
            self._engine.set_policy(settle or Everything())
        self._drain()
        steps = self._notes.steps[: ended + running]
        # Now that all has departed nothing is an expectation: each interval of staleness is known.
        meters = self._engine.meters.queries
        staleness = {name: 1.0 - meter.freshness(start + seconds) for name, meter in meters.items()}
        qos = overall({name: meter.qos for name, meter in meters.items() if meter.qos is not None})
        return Played(staleness, steps, min(1.0, busy), feeder.lags, qos)

    def work_off(self, policy: Policy, rows: int) -> list[StepNote]:
        """Appends rows to all streams and runs until all queries have read them."""
        self.log.collect()
        now = time.time()
        events = [Event(0.0, stream, rows, 0) for stream in self.streams]
        self._engine.set_policy(policy)
        self._notes.steps = []
        for event, table in zip(events, self._tables(events), strict=True):
            self._queues.log.append(event.stream, _arriving(table, now))
            self._queues.notice(event.stream)
        self._drain()
        return list(self._notes.steps)

    def _measure_from(self, start: float) -> None:
        meters = self._engine.meters
        meters.begin(start)
        for state in self._engine.board.queries:
            meters.add_query(state.name, start, state.promises, state.query.graph.streams)

    def _drain(self) -> None:
        while not self._engine.is_idle():
            self._engine.run(until=time.time() + 0.05)

    def _tables(self, events: Sequence[Event]) -> list[pa.Table]:
        """The rows of each arrival, without their times; made beforehand, so that the feeder only appends."""
        most = max((event.rows for event in events), default=1)
        if self._pool.num_rows < 2 * most:
            self._pool = make_rows(2 * most, seed=0)
        last = self._pool.num_rows - most
        return [self._pool.slice(event.place % (last + 1), event.rows) for event in events]


class _Feeder:
    """Appends rows when they are due."""

    def __init__(
        self, queues: LogQueues, clock: RealClock, start: float, due: Sequence[tuple[Event, pa.Table]]
    ) -> None:
        self._queues, self._clock, self._start, self._due = queues, clock, start, due
        self.lags: list[float] = []
        """Seconds from due to durable, by arrival."""
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._feed, name="freshet-bench-feeder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Waits for the last append."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _feed(self) -> None:
        try:
            for event, rows in self._due:
                due = self._start + event.time
                table = _arriving(rows, due)
                time.sleep(max(0.0, due - time.time()))
                self._queues.log.append(event.stream, table)
                self._queues.notice(event.stream)
                self.lags.append(time.time() - due)
                self._clock.wake()
        except BaseException as error:  # reported by the thread that waits for it
            self._failure = error


def _arriving(rows: pa.Table, moment: float) -> pa.Table:
    """The rows as the log wants them."""
    return rows.append_column(ARRIVAL, pa.array(np.full(rows.num_rows, int(moment * 1e6), dtype=np.int64)))


_NO_HISTORY = Retention(history_age=0.0, history_bytes=0, bound_bytes=None)
