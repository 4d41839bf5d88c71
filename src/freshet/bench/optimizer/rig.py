"""One run of ``freshet bench optimizer``: a side plays phases on an engine of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from freshet.bench.optimizer.answers import batch_answer, rows_wrong, sampled
from freshet.bench.optimizer.load import (
    LOOK_S,
    QUERY,
    SCHEMA,
    SHARES,
    SQL,
    LoadPhase,
    LoadWishes,
    backlog,
    calm_rows,
    phase_at,
)
from freshet.bench.rig.engine import EngineRig
from freshet.bench.rig.feed import Arrival
from freshet.bench.rig.notes import StepNote
from freshet.engine import Optimizer, RunMemory
from freshet.model import ARRIVAL, Promises, Stream, parse_schema
from freshet.policies import create
from freshet.quality.optimizer import IntervalTotals, Look, LookSettings
from freshet.testing import remaining

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STRATEGIES: Final = ("pcs", "simplified-segment", "segment")
OPTIMIZER: Final = "optimizer"
THINNED: Final = "optimizer-thin"
"""The optimizer, and the query may be thinned."""
KEPT_BUSY: Final = 0.95
"""Share of the time above which work is in excess (MAV §4.3)."""
TRAIN_ROWS: Final = 8_000
"""Maximum number of rows of a train: in longer ones no strategy could prefer anything for seconds."""
_LEAD: Final = 0.2
"""Seconds from the start of the feeder to the first phase."""
_WARM_ROWS: Final = 3 * TRAIN_ROWS
_BATCHES: Final = 12
"""Number of batches of the calm by which their time is measured, with each strategy."""


class PhaseViolation(NamedTuple):
    """Violated seconds of a phase, by measure."""

    latency: float = 0.0
    memory: float = 0.0

    @property
    def total(self) -> float:
        """The sum over both."""
        return self.latency + self.memory


class PhaseSeen(NamedTuple):
    """Means of what the looks of a phase saw, and the greatest memory among them."""

    latency: float
    memory: float
    most_memory: float


@dataclass(frozen=True, slots=True)
class SideRun:
    """What a side made of the phases.

    Args:
        latency: Mean seconds of all answers, also of those that came after the last phase.
        memory: Mean bytes in queues over the phases.
        seen: By phase, what the looks saw.
        violated: By phase.
        busy: By phase, share of the time in which a step was running.
        monitor_share: Share of the time that looks and their meters took.
        switches: Seconds since the first phase began, and the strategy that was taken.
        rows: Number of rows that came.
        answers: Number of output rows that were compared.
        wrong: Number of these that the batch answer lacks, or has beyond them.
        excess: Number of rows of the overload for which there is no time within :data:`KEPT_BUSY`, by what a row took
            from then on.
        thinned: Number of rows of the overload that were left out.
        kept: Share that the query kept at the looks of the overload, as a mean.
    """

    latency: float
    memory: float
    seen: Mapping[str, PhaseSeen]
    violated: Mapping[str, PhaseViolation]
    busy: Mapping[str, float]
    monitor_share: float
    switches: tuple[tuple[float, str], ...]
    rows: int
    answers: int
    wrong: int
    excess: float = 0.0
    thinned: int = 0
    kept: float = 1.0


class OptimizerRig(EngineRig):
    """An engine with the query, and an optimizer that watches it on every side.

    Args:
        session: Where it runs.
        state: Its state folder.
        side: A strategy that the query keeps, or :data:`OPTIMIZER`.
    """

    def __init__(self, session: SparkSession, state: Path, side: str) -> None:
        streams = [Stream(name, parse_schema(SCHEMA)) for name in SHARES]
        super().__init__(session, state, streams, most_rows=TRAIN_ROWS)
        self._side = side
        self._memory = RunMemory()
        self._optimizer = Optimizer(settings=LookSettings(every=LOOK_S), memory=self._memory)
        self.engine.use(self._optimizer)
        self.add_queries({QUERY: SQL})
        self._warm_up()

    def _warm_up(self) -> None:
        """Every side runs every strategy before it is measured: workers compile steps, and costs are learned."""
        for number, strategy in enumerate(STRATEGIES):
            self.append(backlog(_WARM_ROWS, number))
            self.work_off(create(strategy))

    def capacity(self, rows: int) -> float:
        """Rows per second that are worked off in trains, as a mean over the strategies."""
        seconds = 0.0
        for number, strategy in enumerate(STRATEGIES, len(STRATEGIES)):
            self.append(backlog(rows, number))
            seconds += sum(step.seconds for step in self.work_off(create(strategy)))
        return len(STRATEGIES) * rows / seconds

    def batch_seconds(self, capacity: float) -> float:
        """Seconds that a batch of the calm takes, alone, as a mean over the strategies."""
        seconds, rows = 0.0, calm_rows(capacity)
        for place in range(len(STRATEGIES) * _BATCHES):
            self.append(backlog(rows, 2 * len(STRATEGIES) + place))
            seconds += sum(step.seconds for step in self.work_off(create(STRATEGIES[place // _BATCHES])))
        return seconds / (len(STRATEGIES) * _BATCHES)

    def phases(self, played: Sequence[LoadPhase], came: Sequence[Arrival], wishes: LoadWishes) -> SideRun:
        """Plays phases, and works off what is left."""
        seconds = sum(phase.seconds for phase in played)
        before, spent = self._totals(), self._optimizer.seconds
        start = self._begin(wishes, sum(phase.seconds for phase in played[:2]))
        counter = time.perf_counter() + start - time.time()
        steps, _ = self.play(came, start, seconds)
        spent = self._optimizer.seconds - spent
        steps = [*steps, *self.work_off()]
        totals = self._totals().since(before)
        looks = [look for look in self._memory.looks[QUERY] if start < look.time <= start + seconds + LOOK_S / 2]
        given = sampled(self.read(QUERY).drop_columns([ARRIVAL]))
        left = {name: self._left(name) for name in SHARES}
        right = batch_answer({name: sampled(table) for name, table in left.items()})
        flood = start + sum(phase.seconds for phase in played[:-1])
        came_late = sum(rows_between(self.read(name), flood, start + seconds) for name in SHARES)
        left_late = sum(rows_between(left[name], flood, start + seconds) for name in SHARES)
        spent_late = sum(step.seconds for step in steps if step.committed > counter + flood - start)
        kept = [look.kept for look in looks if look.time > flood]
        return SideRun(
            latency=totals.seconds / max(1, totals.answers),
            memory=_mean_memory(looks, start, seconds),
            seen=_seen(played, looks, start),
            violated=_violated(played, looks, start),
            busy=_busy(played, steps, counter),
            monitor_share=spent / seconds,
            switches=tuple((look.time - start, look.to) for look in looks if look.switches and look.applied),
            rows=sum(map(rows_of, came)),
            answers=given.num_rows,
            wrong=rows_wrong(given, right),
            excess=excess_rows(came_late, played[-1].seconds, spent_late / max(1, left_late)),
            thinned=came_late - left_late,
            kept=sum(kept) / max(1, len(kept)),
        )

    def _begin(self, wishes: LoadWishes, change: float) -> float:
        """Expects something of the query from now on, and says when the first phase begins."""
        if self._side in STRATEGIES:
            self._optimizer.pin(QUERY, self._side)
        overload = ("defer", "thin") if self._side == THINNED else ("defer",)
        self.engine.set_promises(QUERY, Promises(expect=wishes.expectations(_LEAD + change), overload=overload))
        return time.time() + _LEAD

    def _left(self, stream: str) -> pa.Table:
        """Log minus ledger: the rows that the answers are made of."""
        edges = {entry.edge for entry in self.log.ledger() if entry.stream == stream}
        return remaining(self.log, edges.pop(), stream) if edges else self.read(stream)

    def _totals(self) -> IntervalTotals:
        return IntervalTotals.of(self.engine.meters.queries[QUERY], {})


def rows_of(arrival: Arrival) -> int:
    """Number of rows that come together."""
    return sum(table.num_rows for table in arrival[1].values())


def rows_between(table: pa.Table, begin: float, end: float) -> int:
    """Number of rows that arrived between two moments, in seconds since the epoch."""
    arrivals = table[ARRIVAL].to_numpy()
    return int(np.count_nonzero((arrivals >= begin * 1e6) & (arrivals < end * 1e6)))


def excess_rows(rows: int, seconds: float, seconds_per_row: float) -> float:
    """Of rows that come within some seconds, those for which there is no time: they have no more than a share of it.

    >>> excess_rows(1500, 10.0, 0.01)
    550.0
    """
    return max(0.0, rows - KEPT_BUSY * seconds / seconds_per_row)


def _spans(looks: Sequence[Look], start: float) -> list[tuple[Look, float, float]]:
    """Each look with the middle of its interval, since the start, and the interval's length. No look tells of the time
    for which the query was at rest.
    """
    lengths = [min(look.seconds, look.time - start) for look in looks]
    return [(look, look.time - length / 2.0 - start, length) for look, length in zip(looks, lengths, strict=True)]


def _observed(look: Look, measure: str) -> float:
    return next((each.observed or 0.0 for each in look.measures if each.measure == measure), 0.0)


def _mean_memory(looks: Sequence[Look], start: float, seconds: float) -> float:
    spans = _spans(looks, start)
    return sum(_observed(look, "memory") * length for look, _, length in spans) / seconds


def _seen(played: Sequence[LoadPhase], looks: Sequence[Look], start: float) -> dict[str, PhaseSeen]:
    found = {}
    for phase in played:
        own = [look for look, middle, _ in _spans(looks, start) if phase_at(played, middle) == phase.name]
        latency, memory = ([_observed(look, name) for look in own] or [0.0] for name in ("latency", "memory"))
        found[phase.name] = PhaseSeen(sum(latency) / len(latency), sum(memory) / len(memory), max(memory))
    return found


def _violated(played: Sequence[LoadPhase], looks: Sequence[Look], start: float) -> dict[str, PhaseViolation]:
    found = {}
    for phase in played:
        sums = {"latency": 0.0, "memory": 0.0}
        for look, middle, length in _spans(looks, start):
            if phase_at(played, middle) == phase.name:
                for each in look.measures:
                    sums[each.measure] += each.violated * length
        found[phase.name] = PhaseViolation(**sums)
    return found


def _busy(played: Sequence[LoadPhase], steps: Sequence[StepNote], start: float) -> dict[str, float]:
    """Share of each phase in which a step was running, by the middle of the steps."""
    sums = {phase.name: 0.0 for phase in played}
    for step in steps:
        name = phase_at(played, step.committed - step.seconds / 2.0 - start)
        if name is not None:
            sums[name] += step.seconds
    return {phase.name: sums[phase.name] / phase.seconds for phase in played}
