"""The run-time optimizer: looks at queries with expectations, and changes their strategies (MAV §4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from freshet.engine import events
from freshet.engine.board import Board
from freshet.engine.metering import waiting_for
from freshet.engine.optimizer.load_shedding import LoadShedding
from freshet.engine.optimizer.predicting import Predicting
from freshet.engine.optimizer.strategy_memory import RunMemory, StrategyMemory
from freshet.engine.protocols import QueueLog
from freshet.engine.states import QueryState
from freshet.model import Expectations, Promises, Shed, Step, UserError
from freshet.model.promises.look_settings import OptimizerMode
from freshet.policies import MasterScheduler, Policy, create
from freshet.policies.mavstream.master import predicted
from freshet.quality import Meters
from freshet.quality.optimizer import (
    SHIPPED,
    DecisionMaker,
    DecisionTable,
    IntervalFigures,
    IntervalMeter,
    IntervalTotals,
    Look,
    LookSettings,
    StrategyState,
    SystemMonitor,
    Tally,
)
from freshet.quality.snapshots import OptimizerSnapshot, PromiseSnapshot

_SAMPLES: Final = 64
"""Maximum number of samples of the bytes that wait, between two looks."""
_PAUSE: Final = 200.0
"""After a sample, sampling pauses for this multiple of its time: it takes at most half a percent of all time."""

_MOVES: Final = (events.Arrived, events.Submitted, events.Returned)
"""Events after which a worker has become busy or idle, or something waits."""


@dataclass(slots=True)
class WatchedQuery:
    """A query with expectations, or with a strategy that was declared for it."""

    expectations: Expectations
    started: float
    state: StrategyState
    meter: IntervalMeter | None = None
    """None: nothing is expected, or it is at rest."""
    rested: IntervalTotals | None = None
    """What had been counted when it came to rest."""
    tally: Tally = field(default_factory=Tally)
    excess: str = ""
    """Why some of its tuples should be left out: it must be satisfied, is not, and no strategy may be better."""


class Optimizer:
    """Watches queries, decides at each look which strategy suits them, and tells the master scheduler.

    It is the same in simulated time and on Spark: it observes the engine, and the engine calls :meth:`look` when
    :attr:`next_look` has come. A query for which nothing comes and nothing waits is not looked at until something does.

    Args:
        mode: Whether it acts.
        settings: How often it looks, how far ahead, and how long a query stays with a strategy.
        table: The decision table of a query, by its name.
        memory: Keeps strategies and looks.
        predict: Whether ranks come from predictions at each look that finds something violated. The table then says
            which strategies there are.

    >>> optimizer = Optimizer()
    >>> optimizer.pin("archive", "segment")
    >>> optimizer.next_look is None
    True
    """

    def __init__(
        self,
        *,
        mode: OptimizerMode = "act",
        settings: LookSettings | None = None,
        table: Callable[[str], DecisionTable] = lambda query: SHIPPED,
        memory: StrategyMemory | None = None,
        predict: bool = False,
    ) -> None:
        self.mode, self.settings = mode, settings or LookSettings()
        self.memory: StrategyMemory = RunMemory() if memory is None else memory
        self.seconds = 0.0
        """Time that looks and their meters took."""
        self._table, self._predict = table, predict
        self._pins: dict[str, str] = {}
        self._watched: dict[str, WatchedQuery] = {}
        self._resting: set[str] = set()
        self._monitor = SystemMonitor()
        self._next_sample = -math.inf
        self._start = 0.0
        self._counts = Tally()

    def attach(
        self,
        board: Board,
        log: QueueLog,
        meters: Meters,
        stopwatch: Callable[[], float],
        shed: Callable[[Shed], None],
    ) -> None:
        """Says what it watches, how time is measured, and how queries are thinned. The engine calls it."""
        self._board, self._log, self._meters, self._stopwatch = board, log, meters, stopwatch
        self._shedding = LoadShedding(board, log, shed)
        self._predicting = Predicting(board)
        self._start = board.now
        for state in board.queries:
            if state.name in board.numbers:
                self._add(state.name, state.promises, board.now)

    def around(self, policy: Policy) -> Policy:
        """The policy that schedules queries by their strategies, and others by the given one."""
        self._master, self._policy = MasterScheduler(policy), policy
        for name in self._watched:
            self._assign(name)
        return self._master

    def pin(self, query: str, strategy: str | None) -> None:
        """Schedules a query that is yet to be added by one strategy, whatever is seen; None: by any."""
        if strategy is None:
            self._pins.pop(query, None)
        else:
            create(strategy)
            self._pins[query] = strategy

    def set_strategy(self, query: str, strategy: str | None) -> None:
        """Schedules a query by one strategy from now on, whatever is seen. None: the optimizer chooses again if the
        query expects something, and goes on from the strategy that it has.

        Raises:
            UserError: There is no such policy.
        """
        self.pin(query, strategy)
        known, promises = self._watched.get(query), self._state(query).promises
        if known is not None and (strategy is not None or self.mode != "act"):
            # What was decided before says nothing about a strategy that somebody chose.
            known.state = StrategyState(strategy or self._policy.name)
            if strategy is None:
                self._master.assign(query, None, known.expectations.weight)
        self._add(query, promises, self._board.now)

    @property
    def next_look(self) -> float | None:
        """When the next look is due; None: there is nothing to look at."""
        return self._monitor.next_look

    # What happens

    def tell(self, event: events.Event) -> None:
        """Something happened."""
        if isinstance(event, _MOVES):
            self._shedding.tell(event.now)
        if isinstance(event, events.Arrived | events.Committed):
            self._something_moved(event)
        elif isinstance(event, events.Began):
            self._start = event.now
            self._predicting.begin(event.now)
            for name in self._watched:
                self._begin(name, event.now)
        elif isinstance(event, events.Added | events.Promised):
            self._add(event.query, event.promises, event.now)
        elif isinstance(event, events.Dropped):
            self._drop(event.query)
            self._pins.pop(event.query, None)
            self._master.forget(event.query)
        elif isinstance(event, events.Quarantined):
            # No strategy brings it back.
            self._rest(event.query)
        if isinstance(event, events.Promised | events.Dropped | events.Quarantined) and self.next_look is None:
            self._shedding.end()

    def _something_moved(self, event: events.Arrived | events.Committed) -> None:
        if self._resting:
            for name in self._moving(event):
                self._begin(name, event.now, self._watched[name].rested)
        if event.now < self._next_sample:
            return
        began = self._stopwatch()
        due = [each for each in self._watched.items() if each[1].meter is not None]
        for name, watched in due:
            self._sample(name, watched, event.now)
        spent = self._stopwatch() - began
        self.seconds += spent
        gap = min((self._of(watched.expectations).every for _, watched in due), default=0.0) / _SAMPLES
        self._next_sample = event.now + max(gap, _PAUSE * spent)

    def _moving(self, event: events.Arrived | events.Committed) -> Iterable[str]:
        """Queries at rest for which something has come."""
        numbers = event.operators if isinstance(event, events.Arrived) else event.result.unit.nodes
        queries = {query for number in numbers for query in self._board.operators[number].queries}
        return [name for name in self._resting if self._board.numbers[name] in queries]

    # Which queries are watched

    def _add(self, name: str, promises: Promises, now: float) -> None:
        expectations, known = promises.expected, self._watched.get(name)
        if not expectations and name not in self._pins:
            self._drop(name)
            return
        state = self._first(name, expectations) if known is None else known.state
        started = self.memory.started(name, now) if known is None else known.started
        self._watched[name] = replace(known or WatchedQuery(expectations, started, state), expectations=expectations)
        self._assign(name)
        if not expectations:
            self._rest(name)
        elif known is None or known.meter is None:
            self._begin(name, now)
        else:
            self._monitor.watch(name, now, self._of(expectations).every)

    def _first(self, name: str, expectations: Expectations) -> StrategyState:
        """The strategy that a query begins with: the declared one, that of an earlier run, or by the table."""
        if name in self._pins:
            return StrategyState(self._pins[name])
        if self.mode != "act":
            return StrategyState(self._policy.name)
        known = self.memory.strategy(name)
        if known is not None and _is_policy(known.strategy):
            return known
        return StrategyState(self._maker(name).first(expectations))

    def _drop(self, name: str) -> None:
        self._resting.discard(name)
        if self._watched.pop(name, None) is not None:
            self._monitor.drop(name)
            self._master.assign(name, None)

    def _begin(self, name: str, now: float, totals: IntervalTotals | None = None) -> None:
        """Begins an interval of a query, which counts what has come since the totals."""
        watched = self._watched[name]
        self._resting.discard(name)
        if watched.expectations and self.mode != "off" and self._state(name).active:
            watched.meter = IntervalMeter(now, totals or self._totals(name))
            self._monitor.drop(name)
            self._monitor.watch(name, now, self._of(watched.expectations).every)

    def _rest(self, name: str, *, wakes: bool = False) -> None:
        """Looks at a query no longer; it ``wakes`` when something comes for it."""
        if name in self._watched:
            self._resting |= {name} if wakes else set()
            self._watched[name].meter, self._watched[name].rested = None, self._totals(name)
            self._watched[name].excess = ""
            self._monitor.drop(name)
            self._urge(name, 0.0)

    def _assign(self, name: str) -> None:
        """Tells the master scheduler which strategy a query has."""
        watched = self._watched[name]
        if self.mode == "act" or name in self._pins:
            self._master.assign(name, watched.state.strategy, watched.expectations.weight)

    def _urge(self, name: str, weight: float) -> None:
        if self.mode == "act":
            self._master.urge(name, weight)

    # Looks

    def look(self, now: float) -> None:
        """Looks at the queries whose time has come."""
        due = self._monitor.due(now)
        if not due:
            return
        began = self._stopwatch()
        looks = {}
        for name in due:
            self._monitor.looked(name, now)
            if (look := self._look_at(name, self._watched[name], now)) is not None:
                looks[name] = look
        kept = self._kept(now)
        for name, look in looks.items():
            self.memory.looked(name, replace(look, kept=kept.get(name, 1.0)))
        if self.next_look is None:
            self._shedding.end()
        self.seconds += self._stopwatch() - began

    def _kept(self, now: float) -> Mapping[str, float]:
        """What queries keep; thinning begins and ends here, once for all queries (MAV §4.3)."""
        if self.mode != "act":
            return {}
        violated = {name: watched.excess for name, watched in self._watched.items() if watched.excess}
        # Queries may be looked at at different times: arrivals are counted over half an interval at least.
        return self._shedding.look(now, violated, self.settings.every / 2.0)

    def _look_at(self, name: str, watched: WatchedQuery, now: float) -> Look | None:
        """A look at a query; None: it comes to rest."""
        meter = watched.meter
        if meter is None:
            return None
        rows = self._sample(name, watched, now)
        figures = meter.close(now, self._totals(name))
        if not rows and not any(figures.arrivals.values()) and not figures.observed["throughput"]:
            self._rest(name, wakes=True)
            return None
        look = self._decided(name, watched, figures, now)
        watched.excess = f"{', '.join(look.violated)} violated, {look.rule}" if self._is_exhausted(name, look) else ""
        watched.tally.add(look, figures.seconds)
        self._counts.add(look, figures.seconds)
        self._urge(name, look.worst_class)
        if look.switches and look.applied:
            watched.state = watched.state.after(look)
            self.memory.switched(name, watched.state)
            self._assign(name)
        return look

    def _is_exhausted(self, name: str, look: Look) -> bool:
        """Whether only thinning can help a query; a pinned strategy is the only one that there is."""
        pinned = name in self._pins
        return look.exhausted or (pinned and any(each.violated and each.priority == "must" for each in look.measures))

    def _decided(self, name: str, watched: WatchedQuery, figures: IntervalFigures, now: float) -> Look:
        number, table = self._board.numbers[name], self._table(name)
        round_s = predicted(self._board, Step(self._board.queries[number].operators))
        age = max(0.0, now - watched.started)

        def decided(table: DecisionTable) -> Look:
            maker = DecisionMaker(table, settings=self.settings)
            return maker.look(watched.expectations, figures, watched.state, time=now, age=age, round_s=round_s)

        look = decided(table)
        if self._predict and look.violated:
            told = self._predicting.of(number, table.strategies, figures.arrivals, self._of(watched.expectations).every)
            look = replace(decided(DecisionTable.of_figures(told)), predicted=told)
        return replace(look, applied=self.mode == "act" and name not in self._pins)

    def _maker(self, name: str) -> DecisionMaker:
        return DecisionMaker(self._table(name), settings=self.settings)

    def _of(self, expectations: Expectations) -> LookSettings:
        return self.settings.of_query(expectations)

    def _sample(self, name: str, watched: WatchedQuery, now: float) -> int:
        """Tells the meter of a query what waits; returns the number of tuples."""
        waiting = waiting_for(self._state(name), self._board, self._log)
        if watched.meter is not None:
            watched.meter.wait(now, waiting)
        return waiting.rows

    def _state(self, name: str) -> QueryState:
        return self._board.queries[self._board.numbers[name]]

    def _totals(self, name: str) -> IntervalTotals:
        streams = self._state(name).query.graph.streams
        return IntervalTotals.of(self._meters.queries[name], {stream: self._log.end(stream) for stream in streams})

    # Reports

    def strategies(self) -> dict[str, str]:
        """The strategy of each query that has one."""
        return dict(self._master.strategies())

    def promise(self, query: str) -> PromiseSnapshot | None:
        """How it stands with what is expected of a query; None: nothing is, and it has no strategy."""
        watched = self._watched.get(query)
        if watched is None:
            return None
        return watched.tally.snapshot(self.strategies().get(query), query in self._pins)

    def snapshot(self, now: float) -> OptimizerSnapshot:
        """The optimizer's own figures."""
        lasted = now - self._start
        return {
            "mode": self.mode,
            "looks": self._counts.looks,
            "switches": self._counts.switches,
            "looking_s": self.seconds,
            "monitor_share": self.seconds / lasted if lasted > 0.0 else None,
        }


def _is_policy(text: str) -> bool:
    try:
        create(text)
    except UserError:
        return False
    return True
