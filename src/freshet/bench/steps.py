"""Freshet's side of a comparison: one query over a stream that is in the log already, step by step."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from freshet.bench.rows import SCHEMA, SQL, with_arrivals
from freshet.engine import Engine, LogQueues, RealClock
from freshet.engine.events import Committed, Event, Returned, Submitted
from freshet.log import Log, Retention
from freshet.log.segments.sums import Checks
from freshet.model import UnitResult, parse_schema
from freshet.policies import Everything
from freshet.spark.driver.executor import SparkExecutor
from freshet.sql import build_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = "rows"


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Seconds of one step, from the end of the commit before to the end of its own; the parts add up to it.

    ``decide``: queues, meters, policy and binding; ``plan``: finding the plan and describing the train to it;
    ``job``: Spark's job with the durable output file; ``hand_over``: between the engine's thread and the
    executor's; ``commit``: cursors and output in the store.
    """

    rows: int
    decide: float
    plan: float
    job: float
    hand_over: float
    commit: float

    @property
    def step(self) -> float:
        """All of it."""
        return self.decide + self.plan + self.job + self.hand_over + self.commit


@dataclass(slots=True)
class Marks:
    """When the engine's loop passed which point of the step that is running."""

    committed: float = 0.0
    submitted: float = 0.0
    returned: float = 0.0
    steps: list[StepTimes] = field(default_factory=list)

    def tell(self, event: Event) -> None:
        """Notes a point."""
        now = time.perf_counter()
        match event:
            case Submitted():
                self.submitted = now
            case Returned(result=result):
                self.returned = now
                if result.retry is not None:
                    raise RuntimeError(f"the step could not run: {result.retry}")
            case Committed(result=result):
                self._close(result, now)

    def _close(self, result: UnitResult, now: float) -> None:
        plan, job = result.parts["plan"], result.parts["job"]
        away = self.returned - self.submitted
        self.steps.append(
            StepTimes(
                result.unit.rows,
                self.submitted - self.committed,
                plan,
                job,
                away - plan - job,
                now - self.returned,
            )
        )
        self.committed = now


class Steps:
    """An engine over a log of its own, with one query at a time.

    Args:
        session: Where it runs.
        state: Its state folder.
        most_rows: Rows of a train.
        slots: Units that may run at once; the times of steps mean something only where it is one.
    """

    def __init__(self, session: SparkSession, state: Path, most_rows: int, slots: int = 1) -> None:
        self.log = Log.open(state)
        self.log.declare(STREAM, Retention(None, None, None))
        self.schema = parse_schema(SCHEMA)
        clock = RealClock()
        self._marks = Marks()
        self._executor = SparkExecutor(session, state, slots=slots, wake=clock.wake)
        self._queues = LogQueues(self.log)
        self._engine = Engine(
            self._queues, self._executor, clock, Everything(), most_rows=most_rows, observers=[self._marks]
        )
        # From now on each run ends when nothing waits any more.
        self._engine.stop(drain=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.close()
        self.log.close()

    def check(self, checks: Checks) -> None:
        """Sets when tasks look at the checksums of their trains, and whether they write any."""
        self._executor.jobs.checks = checks

    def append(self, rows: pa.Table) -> None:
        """Brings rows into the log, as a source does: durably, as one segment."""
        self.log.append(STREAM, with_arrivals(rows))
        self._queues.notice(STREAM)

    def add_query(self, name: str) -> None:
        """Starts the query under a name, at the beginning of the stream."""
        # Neither side cleans up behind itself while it is measured.
        self.log.declare(name, Retention(None, None, None))
        self._engine.add_query(build_query(name, SQL, {STREAM: self.schema}), {STREAM: self.schema})

    def drop_query(self, name: str) -> None:
        """Ends the query and deletes what it wrote."""
        self._engine.drop_query(name)
        self.log.forget(name)
        self.log.collect()

    def run(self) -> list[StepTimes]:
        """Runs until nothing waits; returns the steps that it took."""
        self._marks.steps = []
        self._marks.committed = time.perf_counter()
        self._engine.run()
        return self._marks.steps

    def rows_read(self, name: str) -> int:
        """How many rows have passed the query."""
        return self._engine.meters.queries[name].tuples_in

    def output_rows(self, name: str) -> int:
        """How many rows the query has written."""
        return self.log.end(name)
