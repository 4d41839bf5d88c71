"""The loop: arrivals, results, decisions. The same in real and in simulated time."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from typing import Any, Final

from freshet.engine.admission import LOOK_AGAIN, MOST_ASKS
from freshet.engine.binding import bind, cut, fed_by_running, next_train, queued, trains_of
from freshet.engine.clock import Clock
from freshet.engine.commands import Commands
from freshet.engine.events import Began, Committed, Decided, Failed, Observer, Returned, Submitted
from freshet.engine.lines import CANCELLED, Line
from freshet.engine.metering import Metering, snapshot_of
from freshet.engine.optimizer.optimizer import Optimizer
from freshet.engine.periodic.instances import InstanceKeeping
from freshet.engine.protocols import Executor, QueueLog
from freshet.engine.settle import effects, failures_of, is_torn, suspects
from freshet.log.errors import LogFull, NotSynced
from freshet.log.store.tail import stamped
from freshet.model import Chain, FreshetError, Promises, RunInstances, Step, Unit, UnitResult
from freshet.policies import Policy
from freshet.policies.periodic import PeriodicFirst
from freshet.quality import Meters
from freshet.quality.meters import overhead_snapshot
from freshet.quality.snapshots import EngineSnapshot

LONGEST_PAUSE: Final = 5.0
"""Maximum seconds between tries while the executor cannot work (a full disk, a lost cluster)."""
DRAIN_PATIENCE: Final = 30.0
"""Seconds in which a drain must bring something about; else it ends, and what waits stays in the log."""
_FEWEST_TRIES: Final = 5


class Undrained(FreshetError):
    """A drain ended although tuples wait: none of them can be processed now."""


class Engine(InstanceKeeping):
    """Runs queries: takes arrivals in, asks the policy, hands units to the executor, commits what came of them.

    All state belongs to the thread that calls :meth:`run`; other threads reach it through :meth:`call`.

    Args:
        most_rows: Maximum number of tuples in a train.
        stopwatch: Measures the time spent deciding; simulations pass their clock, so that runs repeat exactly.
        observers: Are told what happens, after the meters.
        optimizer: Gives queries strategies; None: all go by the policy.
        periodic: Decides which instances of periodic queries run, and what is left to the policy; by default those with
            the earliest deadline run first.
    """

    def __init__(
        self,
        log: QueueLog,
        executor: Executor,
        clock: Clock,
        policy: Policy,
        *,
        most_rows: int = 500_000,
        stopwatch: Callable[[], float] = time.perf_counter,
        observers: Iterable[Observer] = (),
        optimizer: Optimizer | None = None,
        periodic: PeriodicFirst | None = None,
    ) -> None:
        super().__init__(log, executor, clock, policy, observers, periodic)
        self.meters = Meters(clock.now(), workers=executor.slots)
        self.observers.insert(0, Metering(self.meters, self.board))
        self._most_rows = most_rows
        self._stopwatch = stopwatch
        self._steps: deque[Step | RunInstances] = deque()
        self._units = count(1)
        self._commands = Commands()
        self._begun = False
        self._at_rest: Callable[[], None] | None = None
        self._ask_again: float | None = None
        self._pause_until = -math.inf
        self._pause = 0.0
        self._trouble: str | None = None
        self._tries = 0
        self._moved = -math.inf
        self.optimizer: Optimizer | None = None
        if optimizer is not None:
            self.use(optimizer)

    def use(self, optimizer: Optimizer) -> None:
        """Has an optimizer give queries strategies from now on; the others go by the policy as before."""
        self.optimizer = optimizer
        self.set_policy(self.policy)
        optimizer.attach(self.board, self.log, self.meters, self._stopwatch, self.shed)
        self.observers.insert(1, optimizer)

    def set_policy(self, policy: Policy) -> None:
        """Schedules by another policy from now on; what the old one planned and did not start is forgotten."""
        policy = self._periodic.inner if policy is self._periodic else policy
        policy = policy if self.optimizer is None else self.optimizer.around(policy)
        self.policy = policy = self._with_instances(policy)
        self._steps.clear()
        for number, state in enumerate(self.board.queries):
            if state.active:
                policy.changed(self.board, number)
        policy.arrived(self.board, list(self.board.ready))

    # The loop

    def run(self, until: float = math.inf) -> None:
        """Runs until stopped, until a time, or, in simulated time, until nothing more can happen."""
        if not self._begun:
            # From here on all queries are measured over the same time, however long installing them took.
            self._begun = True
            self._tell(Began(self.clock.now()))
        while True:
            self.turn()
            now = self.clock.now()
            if self._is_done(now, until):
                return
            moment = min(self._next_event(now), until)
            if not self.clock.wait(moment if moment < math.inf else None):
                return

    def turn(self) -> None:
        """One turn of the loop: arrivals, results, decisions. On the loop's thread."""
        self._turned = self.clock.now()
        self._commands.obey()
        self._take_arrivals()
        self._take_results()
        self._take_releases()
        if self.optimizer is not None:
            self.optimizer.look(self.clock.now())
        self._dispatch()

    def stop(self, drain: bool = True) -> None:
        """Ends :meth:`run`: after all waiting tuples are processed, or after what is running now. From any thread."""
        self._moved, self._tries = self.clock.now(), 0
        self._stop = "drain" if drain else "now"
        self.clock.wake()

    def work_off(self) -> None:
        """Runs until nothing waits any more; it may be run again after that."""
        self.stop(drain=True)
        self.run()
        self._stop = None

    def give_up(self) -> None:
        """Cancels what is running; it stays in the log. On the loop's thread."""
        for unit in self._running.running():
            self.executor.cancel(unit)

    def is_idle(self) -> bool:
        """Whether nothing runs, and neither a tuple nor a window that is due to close waits for an active query. On the
        loop's thread."""
        self._take_arrivals()
        while self._tell_time(at_once=True):
            self._take_in()
        if self._running or self.releases.runnable():
            return False
        return not any(each.pending and each.active for each in self.board.operators)

    def call(self, function: Callable[[], Any]) -> Future[Any]:
        """Runs a function on the loop's own thread, between two decisions."""
        future = self._commands.add(function)
        self.clock.wake()
        return future

    def at_rest(self, function: Callable[[], None]) -> None:
        """Runs a function as soon as nothing is running; until then nothing begins. On the loop's thread."""
        self._at_rest = function

    def _is_done(self, now: float, until: float) -> bool:
        if now >= until:
            return True
        if self._stop is None or self._running:
            return False
        if self._stop == "now" or self.is_idle():
            return True
        if now - self._moved >= DRAIN_PATIENCE and not 0 < self._tries < _FEWEST_TRIES:
            raise Undrained(self._why_undrained())
        return False

    def _why_undrained(self) -> str:
        kinds = ((("query" if name in self.board.numbers else "queue"), name, why) for name, why in self._held.items())
        held = (f"{kind} {name} is held back, {why}" for kind, name, why in kinds)
        why = self._trouble or next(held, "no operator can run")
        return f"nothing that waits could be processed for {DRAIN_PATIENCE:g} s: {why}; the next run continues with it"

    def _next_event(self, now: float) -> float:
        """When to look again, at the latest; infinity if only a wake-up can bring news."""
        moments = [self.log.next_arrival(), self.executor.next_finish()]
        moments += [self.optimizer.next_look] if self.optimizer is not None else ()
        if self._stop is None:
            moments.append(self.releases.next_release())
        if self._stop == "drain" and not self._running:
            moments.append(max(self._moved + DRAIN_PATIENCE, now + LOOK_AGAIN))
        if self.time.news:
            moments.append(self._tell_again)
        if self._pause_until > now:
            moments.append(self._pause_until)
        elif (self.board.ready or self.releases.runnable()) and self.board.idle_workers:
            again = self._ask_again
            moments.append(again if again is not None and again > now else now + LOOK_AGAIN)
        if self._held:
            moments.append(now + LOOK_AGAIN)
        return min((moment for moment in moments if moment is not None), default=math.inf)

    # Results

    def _take_results(self) -> None:
        self._take_back(self.executor.finished())
        results: Sequence[UnitResult] = self._running.due()
        if not results:
            return
        if self._at_rest is None and self.releases.runnable():
            # Whatever is not settled counts as running, so the next instance can run while this is committed.
            self._dispatch()
        failures = {number: text for result in results for number, text in failures_of(result, self.board).items()}
        results, done = self._commit(results)
        if done is None:
            failures, done = {}, {}
        departure = self.clock.now()
        for result in results:
            self._settle(result, done.get(result.unit.id), departure)
        for number in failures.keys() - self.board.stopped:
            self.quarantine(self.board.queries[number].name, failures[number])
        self._take_arrivals(self.time.concerned(number for result in results for number in result.unit.nodes))

    def _commit(
        self, results: Sequence[UnitResult]
    ) -> tuple[Sequence[UnitResult], Mapping[str, Sequence[Chain]] | None]:
        """Commits what can be committed. Returns what is to be settled, and the chains that took effect by unit; None:
        nothing could be written."""
        good = [result for result in results if result.retry is None]
        chains = effects(good, self.board)
        torn = [one for one in good if one.unit.id in self._outdated or is_torn(one, self.board, chains[one.unit.id])]
        if torn:
            self._take_back([replace(result, retry=CANCELLED) for result in torn], again=True)
            results = self._running.due()
            good = [result for result in results if result.retry is None]
            chains = {result.unit.id: chains[result.unit.id] for result in good}
        try:
            self.log.commit([self._commit_of(result, chains[result.unit.id]) for result in good])
        except (LogFull, NotSynced) as error:
            # Nothing of the group was committed: it runs again when there is room, and into other files.
            self._take_back([replace(result, retry=str(error)) for result in results], again=True)
            return self._running.due(), None
        return results, chains

    def _take_back(self, results: Sequence[UnitResult], again: bool = False) -> None:
        """Units are back from the executor; ``again``: they were before, but could not be committed."""
        for result in results:
            if not again:
                self.board.idle_workers += 1
                for each in self.releases.running(result.unit.id):
                    each.back = True
                self._tell(Returned(self.clock.now(), result))
            for useless in self._running.returned(result):
                self.executor.cancel(useless)

    def _settle(self, result: UnitResult, chains: Sequence[Chain] | None, departure: float) -> None:
        """Brings queues and statistics up to date; ``chains`` took effect, None: nothing was committed."""
        unit, board = result.unit, self.board
        self._running.settled(unit.id)
        self._outdated.discard(unit.id)
        nodes, effect = unit.nodes, {id(chain) for chain in chains or ()}
        self._release(unit, effect)
        for each in self.releases.settled(unit, chains):
            self._answered(each, result, departure)
        if unit.states:
            self.time.settled(result, chains or ())
            self._freed(nodes)
        if chains is None:
            self._back(result, departure)
        else:
            self._pause, self._trouble = 0.0, None
            self._moved, self._tries = departure, 0
            board.ran(nodes, result.overhead, result.way)
            for chain, done in zip(unit.chains, result.chains, strict=True):
                if id(chain) in effect:
                    for run in done.operators:
                        board.operators[run.operator].statistics.add(run)
            self.thinning.learn(result.worths)
            self._tell(Committed(departure, result, chains))
        self.policy.completed(board, nodes)
        board.free(nodes)

    def _back(self, result: UnitResult, now: float) -> None:
        """Nothing of a unit was committed. Gives the executor time to recover; a cancelled unit is nobody's fault."""
        edges = suspects(result.unit, self.board, result.apart)
        for edge in edges:
            edge.apart = True
        if not edges and result.retry != CANCELLED:
            self._trouble = result.retry
            self._tries += 1
            self._pause = min(LONGEST_PAUSE, 2 * self._pause or LOOK_AGAIN)
            self._pause_until = now + self._pause
        self._tell(Failed(now, result))

    # Decisions

    def _dispatch(self) -> None:
        if self._at_rest is not None:
            if self._running:
                return
            function, self._at_rest = self._at_rest, None
            function()
        if self.clock.now() >= self._pause_until:
            self._follow_policy()
            self._read_ahead()

    def _follow_policy(self) -> None:
        board, asks = self.board, MOST_ASKS
        while board.idle_workers and (board.ready or self._steps or self.releases.runnable()) and self._stop != "now":
            if not self._steps:
                if asks:
                    self._decide()
                if not self._steps:
                    return
                asks -= 1
            first = self._steps[0]
            if self._running and isinstance(first, Step) and fed_by_running(board, first.nodes):
                return
            unit = self._bind(self._steps.popleft())
            if unit is not None:
                self._submit(unit)
                asks = MOST_ASKS

    def _read_ahead(self) -> None:
        """Makes idle workers start the next trains of steps that are already running.

        Only full trains: a shorter one grows while it waits, and costs as much overhead.
        """
        for line in self._running:
            if not self.board.idle_workers or self.board.ready or self._steps or self._stop == "now":
                return
            # As many as can run, and as many again that are done and wait for one before them.
            if len(line.units) < 2 * self.executor.slots and not line.broken:
                step = next_train(self.board, line.last, self._most_rows)
                unit = step and self._bind(step, ahead=True)
                if unit:
                    self._submit(unit, line)

    def _bind(self, step: Step | RunInstances, ahead: bool = False) -> Unit | None:
        unit = stamped(f"{self.log.epoch}-{next(self._units)}", self.log.commits)
        if isinstance(step, RunInstances):
            return self._bind_instances(step, unit)
        return bind(self.board, step, unit, self._most_rows, self.log, self.time.states, ahead)

    def _decide(self) -> None:
        started, self.board.now = self._stopwatch(), self.clock.now()
        decision = self.policy.decide(self.board)
        for action in decision.sheds:
            self.shed(action)
        for given_up in decision.abandoned:
            self._abandon(given_up)
        for work in decision.work:
            self._steps.extend(cut(self.board, work, self.executor) if isinstance(work, Step) else [work])
        self._ask_again = decision.again
        self.board.deciding = seconds = self._stopwatch() - started
        self._tell(Decided(self.board.now, decision, seconds, lambda: self.policy.why(self.board, decision)))

    def _submit(self, unit: Unit, line: Line | None = None) -> None:
        board = self.board
        for chain in unit.chains:
            for edge, train in queued(trains_of(board, chain)):
                edge.in_flight += train.rows
                edge.waiting -= train.rows
                self._look_at_head(edge)
            board.count(chain, 1)
        self.time.began(unit)
        now = self.clock.now()
        self._running.begin(unit, now, line)
        board.idle_workers -= 1
        self.executor.submit(unit)
        self._tell(Submitted(now, unit))

    def promises(self) -> dict[str, Promises]:
        """What was promised to each query. Only on the loop's own thread."""
        return {name: meter.promises for name, meter in self.meters.queries.items()}

    def running_since(self) -> Collection[float]:
        """When the units that are running began. Only on the loop's own thread."""
        return self._running.running().values()

    def snapshot(self) -> EngineSnapshot:
        """All meters now. Only on the loop's own thread."""
        now, running = self.clock.now(), self.running_since()
        meters = snapshot_of(self.board, self.meters, self.log, self.time, now, running)
        ways = {way: overhead_snapshot(each) for way, each in self.board.calls_by_way.items()}
        for name, query in meters["queries"].items():
            query["instances"] = self._instances_of(name)
            if self.optimizer is not None:
                query["promise"] = self.optimizer.promise(name)
        optimizer = None if self.optimizer is None else self.optimizer.snapshot(now)
        return {**meters, "ways": ways, "trouble": self._trouble, "optimizer": optimizer}
