"""One run of Table 2's workload on Spark: a side plays a load."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from freshet.bench.periodic.answers import AnswerCheck, AnswersChecked
from freshet.bench.periodic.sides import QualitySide, manager_of, scheduler_of
from freshet.bench.periodic.table2 import PERIOD_S, TABLE, THIN, Table2, dealt
from freshet.bench.rig.engine import EngineRig
from freshet.engine import Engine
from freshet.engine.events import Event, Released
from freshet.engine.periodic.window_sampler import WindowSampler
from freshet.log import TableVersions
from freshet.policies import Everything
from freshet.policies.periodic import PeriodicFirst
from freshet.quality.periodic import InstanceFigures
from freshet.reproduce.rtstream.runs import RecordedRule
from freshet.sql import build_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WARM_S: Final = 12.0
"""Seconds of a run until windows are full and costs are known, so that three instances of each query ran before levels
fall, and levels have settled: what is released before does not count."""
_LEAD: Final = 0.3
"""Seconds from the start of the feeder to the first tuple, at least."""
DEALINGS: Final = 10


@dataclass(frozen=True, slots=True)
class PeriodicRun:
    """What a side made of a load.

    Args:
        instances: Those that were released after the warm-up.
        besides: Seconds that all instances of a common release take besides their operators.
    """

    instances: tuple[InstanceFigures, ...]
    besides: float = 0.0

    @property
    def quality(self) -> float:
        """Mean quality; 0 for those that missed their deadline (RT Eq. 3)."""
        return float(np.mean([each.quality for each in self.instances]))

    @property
    def deviation(self) -> float:
        """Standard deviation of the quality (RT Fig. 10b) among the instances with the same dealing of tables, the mean
        over all dealings."""
        dealings: dict[int, list[float]] = {}
        for each in self.instances:
            dealings.setdefault(round(each.release) // PERIOD_S, []).append(each.quality)
        return float(np.mean([np.std(some) for some in dealings.values()]))

    @property
    def missed(self) -> float:
        """Share of the instances that were late."""
        return float(np.mean([each.missed for each in self.instances]))

    @property
    def ended_early(self) -> float:
        """Share of the instances that ended with a part of what they were to read."""
        return float(np.mean([each.ended_early for each in self.instances]))

    @property
    def time_errors(self) -> list[float]:
        """Relative errors of predicted times."""
        return [each.time_error for each in self.instances if each.time_error is not None]

    @property
    def sampling(self) -> float:
        """Share of the time of instances that samplers took."""
        sampling = sum(each.sampling for each in self.instances)
        return sampling / (sampling + sum(each.took for each in self.instances))

    @property
    def makespans(self) -> list[float]:
        """Seconds from each common release to the last of its answers."""
        ends: dict[float, float] = {}
        for each in self.instances:
            if round(each.release) % PERIOD_S == 0 and each.finished is not None:
                ends[each.release] = max(ends.get(each.release, 0.0), each.finished - each.release)
        return list(ends.values())


class Dealer:
    """Deals quality tables anew at each common release, before levels are decided.

    Args:
        engine: Whose queries get them.
        queries: Their names.
    """

    def __init__(self, engine: Engine, queries: Sequence[str]) -> None:
        self._engine, self._queries = engine, queries
        self.zero = 0
        """The number of the common release at which the first dealing is used."""

    def tell(self, event: Event) -> None:
        """Looks for a common release."""
        if not isinstance(event, Released):
            return
        number, rest = divmod(max(each.release for each in event.instances), PERIOD_S * 1_000_000)
        if rest == 0:
            states = {each.name: each for each in self._engine.board.queries}
            for name, table in zip(self._queries, dealt((number - self.zero) % DEALINGS), strict=False):
                self._engine.set_promises(name, replace(states[name].promises, quality=table))


class PeriodicRig(EngineRig):
    """An engine with Table 2's queries, one after the other on one worker.

    Args:
        session: Where it runs.
        state: Its state folder.
        bed: The workload.
    """

    def __init__(self, session: SparkSession, state: Path, bed: Table2) -> None:
        self._bed, self._order = bed, PeriodicFirst(scheduler_of("dynamic"), Everything())
        super().__init__(session, state, bed.declared, periodic=self._order)
        TableVersions(self.log, TABLE).put(bed.known)
        schemas = {stream.name: stream.schema for stream in bed.declared} | {TABLE: bed.known.schema}
        for name, text in bed.texts.items():
            self.log.declare(name, kind="output")
            self.engine.add_query(build_query(name, text, schemas, promises=THIN, tables=[TABLE]), schemas)
        self._dealer = Dealer(self.engine, list(bed.texts))
        self.engine.observers.append(self._dealer)
        self._sampler = WindowSampler(self.engine.board.network, self.queues, self.log.folder)

    def side(self, side: QualitySide, rule: RecordedRule, load: float, seconds: float, seed: int) -> PeriodicRun:
        """Plays a load; the dealings of a seed begin with four times its number."""
        came = list(self._bed.arrivals(load, WARM_S + seconds, seed))
        self._order.levels = levels = manager_of(side, rule, self._sampler)
        self._order.scheduler = scheduler_of(side)
        rule.figures.clear()
        start = PERIOD_S * math.ceil((time.time() + _LEAD) / PERIOD_S)
        first, end = start + WARM_S, start + WARM_S + seconds
        self._dealer.zero = round(first / PERIOD_S) - 4 * seed
        self.play(came, start, WARM_S + seconds)
        self.engine.work_off()
        counted = tuple(each for each in rule.figures if first <= each.release < end)
        return PeriodicRun(counted, sum(levels.besides.values()))

    def answers(self) -> AnswersChecked:
        """Compares all answers so far with batch answers."""
        return AnswerCheck(self.log, self._bed).all(self.log.instances())
