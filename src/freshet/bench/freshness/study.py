"""The study of ``freshet bench freshness`` and ``qos``: one engine on Spark plays the same arrivals under each
policy."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa

from freshet.bench.freshness.load import LoadBatch
from freshet.bench.freshness.queries import SCHEMA, Question, make_rows
from freshet.bench.rig.engine import NO_HISTORY, EngineRig
from freshet.bench.rig.notes import StepNote
from freshet.model import Curve, Promises, Stream, parse_schema
from freshet.policies import Everything, Policy
from freshet.quality.qos import Qos, overall
from freshet.spark.session.residency import ResidentSetting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS: Final = 4_000_000
"""Maximum number of rows of a train: no train is cut."""
_LEAD: Final = 0.2
"""Seconds from the start of the feeder to the first arrival."""


@dataclass(frozen=True, slots=True)
class Played:
    """What a run gave.

    Args:
        staleness: 1 - F of each query over the observation period.
        steps: The steps that began in it.
        busy: Share of the period in which a step was running.
        lags: By arrival, seconds from when rows were due to when they were durably in the log.
        qos: Utility of all answers to what came in it, by the queries' latency curves; 1 if they have none.
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


class Study:
    """Queries on Spark, one step at a time, over streams that get rows when they are due.

    Args:
        session: Where it runs.
        state: Its state folder.
        questions: The queries.
        resident: How many residents, as an application declares it; with none each step is a Spark job.
    """

    def __init__(
        self, session: SparkSession, state: Path, questions: Sequence[Question], resident: ResidentSetting = "auto"
    ) -> None:
        self.streams = tuple(dict.fromkeys(each.stream for each in questions))
        self._pool = make_rows(1, seed=0)
        declared = [Stream(name, parse_schema(SCHEMA)) for name in self.streams]
        self._rig = EngineRig(session, state, declared, most_rows=_ROWS, retention=NO_HISTORY, resident=resident)
        self._rig.add_queries({each.name: each.sql for each in questions})
        for each in questions:
            form, why = self._rig.executor.form(self._rig.engine.board.network.of(each.name))
            if form != "vectorised":
                raise RuntimeError(f"query {each.name} is not vectorised: {why}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._rig.close()

    def set_curves(self, curves: Mapping[str, Curve]) -> None:
        """Sets what the answers of queries are worth by their latency from now on."""
        for name, curve in curves.items():
            self._rig.engine.set_promises(name, Promises(curve=curve))

    def play(
        self, policy: Policy, events: Sequence[LoadBatch], seconds: float, *, settle: Policy | None = None
    ) -> Played:
        """Runs a policy over arrivals for some seconds, and works off what is left before it returns.

        Args:
            policy: The scheduler.
            events: The arrivals.
            seconds: Seconds of the observation.
            settle: The scheduler that works off what is left; by default everything at once.
        """
        self._rig.log.collect()
        # Made beforehand, so that the feeder only appends.
        arrivals = [
            (event.time, {event.stream: rows}) for event, rows in zip(events, self._tables(events), strict=True)
        ]
        start = time.time() + _LEAD
        end = time.perf_counter() + _LEAD + seconds
        self._measure_from(start)
        # The observation ends at the same moment for all; what is running then departs after it.
        steps, lags = self._rig.play(arrivals, start, seconds, policy)
        steps = steps + self._rig.work_off(None if settle is policy else settle or Everything())
        began = [step for step in steps if step.submitted < end]
        busy = sum(step.seconds - max(0.0, step.committed - end) for step in began) / seconds
        # Now that everything has departed, each interval of staleness is known, and none is an expectation.
        meters = self._rig.engine.meters.queries
        staleness = {name: 1.0 - meter.freshness(start + seconds) for name, meter in meters.items()}
        qos = overall({name: meter.qos for name, meter in meters.items() if meter.qos is not None})
        return Played(staleness, began, min(1.0, busy), lags, qos)

    def work_off(self, policy: Policy, rows: int) -> list[StepNote]:
        """Appends rows to all streams and runs until all queries have read them."""
        self._rig.log.collect()
        events = [LoadBatch(0.0, stream, rows, 0) for stream in self.streams]
        self._rig.append({event.stream: rows for event, rows in zip(events, self._tables(events), strict=True)})
        return self._rig.work_off(policy)

    def _measure_from(self, start: float) -> None:
        meters = self._rig.engine.meters
        meters.begin(start)
        for state in self._rig.engine.board.queries:
            meters.add_query(state.name, start, state.promises, state.query.graph.streams)

    def _tables(self, events: Sequence[LoadBatch]) -> list[pa.Table]:
        """The rows of each arrival."""
        most = max((event.rows for event in events), default=1)
        if self._pool.num_rows < 2 * most:
            self._pool = make_rows(2 * most, seed=0)
        last = self._pool.num_rows - most
        return [self._pool.slice(event.place % (last + 1), event.rows) for event in events]
