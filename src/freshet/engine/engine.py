"""The loop: arrivals, results, decisions. The same in real and in simulated time."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, Final

import pyarrow as pa

from freshet.engine.binding import bind, fed_by_running, next_train
from freshet.engine.board import DROPPED, Board, OperatorState, QueryState
from freshet.engine.clock import Clock
from freshet.engine.lines import Line, Lines
from freshet.engine.protocols import Executor, QueueLog
from freshet.engine.settle import commit_of, failures_of
from freshet.engine.timekeeper import Timekeeper
from freshet.log.errors import LogFull
from freshet.log.tail import stamped
from freshet.model import (
    Chain,
    ChainResult,
    Commit,
    Curve,
    FreshetError,
    Node,
    Query,
    Step,
    Unit,
    UnitResult,
    UserError,
)
from freshet.policies import Policy
from freshet.quality import Meters, OverheadStatistics, QueueLength, Waiting

LOOK_AGAIN: Final = 0.1
"""Seconds after which outputs that were held back, and policies that declined to run anything, are asked again."""
LONGEST_PAUSE: Final = 5.0
"""Most seconds between tries while the executor cannot work (a full disk, a lost cluster)."""
DRAIN_PATIENCE: Final = 30.0
"""Seconds in which a drain must bring something about; else it ends, and what waits stays in the log."""
_FEWEST_TRIES: Final = 5


class Undrained(FreshetError):
    """A drain ended although tuples wait: nothing of them can be processed now."""


class Engine:
    """Runs queries: takes arrivals in, asks the policy, hands units to the executor, commits what came of them.

    All state belongs to the thread that calls :meth:`run`; other threads reach it through :meth:`call`.

    Args:
        log: Where tuples wait and where results become durable.
        executor: Runs units.
        clock: Real or virtual.
        policy: Decides.
        meters: Measures.
        most_rows: Most tuples of a train.
        stopwatch: Measures the time spent deciding; simulations pass their clock, so that runs repeat exactly.
    """

    def __init__(
        self,
        log: QueueLog,
        executor: Executor,
        clock: Clock,
        policy: Policy,
        *,
        meters: Meters | None = None,
        most_rows: int = 500_000,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.log, self.executor, self.clock = log, executor, clock
        self.policy = policy
        self.meters = meters or Meters(clock.now(), workers=executor.slots)
        self.board = Board(log.bytes, now=clock.now(), workers=executor.slots, idle_workers=executor.slots)
        self.time = Timekeeper(self.board, log)
        self.overhead = OverheadStatistics()
        self.schemas: dict[str, pa.Schema] = {}
        self._most_rows = most_rows
        self._stopwatch = stopwatch
        self._steps: deque[Step] = deque()
        self._running = Lines()
        self._units = count(1)
        self._commands: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._stop: str | None = None
        self._begun = False
        self._pause_until = -math.inf
        self._pause = 0.0
        self._trouble: str | None = None
        self._tries = 0
        self._moved = -math.inf
        self._look_again = -math.inf
        self._tell_again = -math.inf
        self._held: Mapping[str, str] = {}

    # Queries

    def add_query(self, query: Query, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
        """Starts a query over streams of the given schemas; returns the schema of its output."""
        board = self.board
        self.schemas.update(schemas)
        state = board.add(query)
        fail = {other.name for other in board.queries if other.query.on_error == "fail"}
        try:
            outputs = self.executor.install(board.network.nodes, self.schemas, fail)
        except Exception:
            board.withdraw(state)
            raise
        self.schemas[query.name] = outputs[query.name]
        for operator in board.of(state):
            node = operator.node
            at = query.start if node.is_first else "earliest"
            operator.cursor = self.log.start_reader(node.name, node.reads, at)
        self.time.add(state, self.executor.states)
        self._measure(state)
        for stream in dict.fromkeys(operator.node.reads for operator in board.of(state)):
            self._enqueue(stream)
        # What it reads may have been of no concern to anybody until now.
        self._look_at_time(range(len(board.queries)))
        self.policy.changed(board, len(board.queries) - 1)
        return outputs[query.name]

    def _measure(self, state: QueryState) -> None:
        # Work that queries share is measured as theirs: what waits for it, and where its tuples come out.
        if not state.query.hidden:
            streams = dict.fromkeys(self.board.sources(state))
            self.meters.add_query(state.name, self.clock.now(), state.weight, streams, state.curve)

    def drop_query(self, name: str) -> None:
        """Ends a query; what it was running is given up, what it has written stays in its output, and its readers
        keep their place."""
        number, state = self._find(name)
        self.board.drop(state)
        self.time.drop(state)
        self.log.park([*(operator.node.name for operator in self.board.of(state)), *self.time.readers(state)])
        if not state.query.hidden:
            self.meters.drop_query(name)
        self.policy.changed(self.board, number)

    def set_weight(self, name: str, weight: float) -> None:
        """Changes the importance of a query while it runs (FAS §4.4)."""
        if not 0.0 < weight <= 1.0:
            raise UserError(f"query {name}: weight {weight} is outside (0, 1]")
        number, state = self._find(name)
        state.weight = weight
        if not state.query.hidden:
            self.meters.set_weight(name, weight)
        self.policy.changed(self.board, number)

    def set_curve(self, name: str, curve: Curve | None) -> None:
        """Changes what the answers of a query are worth by their latency; its QoS is measured anew."""
        number, state = self._find(name)
        state.query = replace(state.query, curve=curve)
        if not state.query.hidden:
            self.meters.set_curve(name, curve)
        self.policy.changed(self.board, number)

    def set_policy(self, policy: Policy) -> None:
        """Schedules by another policy from now on; what the old one planned and did not start is forgotten."""
        self.policy = policy
        self._steps.clear()
        for number, state in enumerate(self.board.queries):
            if state.active:
                policy.changed(self.board, number)
        policy.arrived(self.board, list(self.board.ready))

    def quarantine(self, name: str, reason: str) -> None:
        """Stops a query that cannot go on; the others do."""
        number, state = self._find(name)
        self.board.deactivate(state, reason)
        for reader in (*(operator.node.name for operator in self.board.of(state)), *self.time.readers(state)):
            self.log.set_need(reader, False)
        if not state.query.hidden:
            self.meters.quarantine(name, reason)
        self.policy.changed(self.board, number)
        if state.query.hidden:
            # Each of them would have failed with it alone: it is the same operator over the same tuples.
            for served in self.board.served_by(state):
                if served.active:
                    self.quarantine(served.name, reason)

    def _find(self, name: str) -> tuple[int, QueryState]:
        number = self.board.numbers.get(name)
        if number is None:
            raise UserError(f"there is no query {name!r}")
        return number, self.board.queries[number]

    # The loop

    def run(self, until: float = math.inf) -> None:
        """Runs until stopped, until a time, or, in simulated time, until nothing more can happen."""
        if not self._begun:
            self._begin()
        while True:
            self._obey()
            self._take_arrivals()
            self._take_results()
            self._dispatch()
            now = self.clock.now()
            if self._is_done(now, until):
                return
            moment = min(self._next_event(now), until)
            if not self.clock.wait(moment if moment < math.inf else None):
                return

    def _begin(self) -> None:
        """Measures from here on, so that all queries count over the same time however long installing them took."""
        self._begun = True
        self.meters.begin(self.clock.now())
        for state in self.board.queries:
            if state.active:
                self._measure(state)

    def stop(self, drain: bool = True) -> None:
        """Ends :meth:`run`: after all waiting tuples are processed, or after what is running now. From any thread."""
        self._moved, self._tries = self.clock.now(), 0
        self._stop = "drain" if drain else "now"
        self.clock.wake()

    def give_up(self) -> None:
        """Cancels what is running; it stays in the log. On the loop's thread."""
        for unit in self._running.ids():
            self.executor.cancel(unit)

    def is_idle(self) -> bool:
        """Whether nothing runs, and nothing that has come so far waits for an active query, be it a tuple or a window
        that event time has passed. On the loop's thread."""
        self._take_arrivals()
        while self._tell_time(at_once=True):
            self._take_in()
        active = (state for state in self.board.queries if state.active)
        return not self._running and not any(op.pending for state in active for op in self.board.of(state))

    def call(self, function: Callable[[], Any]) -> Future[Any]:
        """Runs a function on the loop's own thread, between two decisions."""
        future: Future[Any] = Future()
        self._commands.put((function, future))
        self.clock.wake()
        return future

    def _obey(self) -> None:
        while True:
            try:
                function, future = self._commands.get_nowait()
            except Empty:
                return
            try:
                future.set_result(function())
            except Exception as error:
                future.set_exception(error)

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
        held = (f"query {name} is held back, {why}" for name, why in self._held.items())
        why = self._trouble or next(held, "no operator can run")
        return f"nothing of what waits could be processed for {DRAIN_PATIENCE:g} s: {why}; the next run goes on with it"

    def _next_event(self, now: float) -> float:
        """When to look again, at the latest; infinity where only a wake-up can bring news."""
        moments = [self.log.next_arrival(), self.executor.next_finish()]
        if self._stop == "drain" and not self._running:
            moments.append(max(self._moved + DRAIN_PATIENCE, now + LOOK_AGAIN))
        if self.time.news:
            moments.append(self._tell_again)
        if self._pause_until > now:
            moments.append(self._pause_until)
        elif self._held or (self.board.ready and self.board.idle_workers):
            moments.append(now + LOOK_AGAIN)
        return min((moment for moment in moments if moment is not None), default=math.inf)

    # Arrivals

    def _take_arrivals(self, ran: Iterable[int] = ()) -> None:
        """Takes in what has come; event time may have gone on for its readers, and for queries that ``ran``."""
        self.board.now = self.clock.now()
        self._take_in(ran)
        while self._tell_time():
            self._take_in()
        if self.board.now >= self._look_again:
            self._look_again = self.board.now + LOOK_AGAIN
            self._look_at_outputs()

    def _take_in(self, ran: Iterable[int] = ()) -> None:
        grown = self.log.grown()
        for stream in grown:
            self._enqueue(stream)
        # Only now is every committed tuple in the queue that it waits in.
        self._look_at_time(ran, grown)

    def _enqueue(self, stream: str) -> None:
        end = self.log.end(stream)
        came: list[int] = []
        for number in self.board.readers.get(stream, ()):
            operator = self.board.operators[number]
            new = end - operator.head - operator.waiting
            if new > 0:
                if not came:
                    last = self.log.arrival(stream, end - 1)
                self._add_pending(operator, new, last)
                came.append(number)
        if came:
            self.policy.arrived(self.board, came)

    def _add_pending(self, operator: OperatorState, rows: int, last_arrival: float) -> None:
        if not operator.waiting:
            operator.head_arrival = self.log.arrival(operator.node.reads, operator.head)
        operator.waiting += rows
        operator.tail_arrival = last_arrival
        self.board.refresh(operator)

    def _look_at_time(self, queries: Iterable[int], streams: Iterable[str] = ()) -> None:
        """Finds the windows that event time has passed."""
        closing = [*self.time.look(queries), *self.time.moved(streams)]
        if closing:
            self.policy.arrived(self.board, closing)

    def _tell_time(self, at_once: bool = False) -> bool:
        """Lets readers of outputs know how far event time is where no unit did; not too often, unless ``at_once``."""
        if not self.time.news or not (at_once or self.board.now >= self._tell_again):
            return False
        self._tell_again = self.board.now + LOOK_AGAIN
        try:
            self.log.commit([self.time.telling()])
        except LogFull:
            return False
        self.time.told()
        return True

    def _look_at_outputs(self) -> None:
        """Holds queries whose output takes nothing now, and lets those go on whose output does again."""
        held = self.log.held()
        for name in {*held, *self._held}:
            if name in self.board.network:
                number, state = self._find(name)
                state.held = held.get(name)
                self.meters.hold(name, state.held)
                for operator in self.board.of(state):
                    self.board.refresh(operator)
                if (name in held) != (name in self._held):
                    self.policy.changed(self.board, number)
        self._held = held

    # Results

    def _take_results(self) -> None:
        self._take_back(self.executor.finished())
        results = self._running.due()
        if not results:
            return
        good = [result for result in results if result.retry is None]
        failures = {number: text for result in good for number, text in failures_of(result, self.board).items()}
        stopped = self.board.stopped | failures.keys()
        try:
            self.log.commit([self._commit_of(result, stopped) for result in good])
        except LogFull as full:
            # Nothing of the group was committed: it runs again when there is room.
            self._take_back([replace(result, retry=str(full)) for result in results], again=True)
            results, failures = self._running.due(), {}
        departure = self.clock.now()
        for result in results:
            self._settle(result, stopped if result.retry is None else None, departure)
        for number in failures.keys() - self.board.stopped:
            self.quarantine(self.board.queries[number].name, failures[number])
        self._take_arrivals(
            {self.board.operators[number].query for result in results for number in _firsts(result.unit)}
        )

    def _commit_of(self, result: UnitResult, stopped: set[int]) -> Commit:
        return self.time.commit_of(result, stopped, commit_of(result, self.board, stopped))

    def _take_back(self, results: Sequence[UnitResult], again: bool = False) -> None:
        """Units are back from the executor; ``again``: they were, but could not be committed."""
        for result in results:
            self.board.idle_workers += not again
            for useless in self._running.returned(result):
                self.executor.cancel(useless)

    def _settle(self, result: UnitResult, stopped: set[int] | None, departure: float) -> None:
        """Brings queues, statistics and meters up to date; ``stopped`` is None where nothing was committed."""
        self._running.settled(result.unit.id)
        self.meters.busy(result.finished - result.started)
        ran: list[int] = []
        for work in result.unit.works:
            for chain in work.chains:
                query = self.board.operators[chain.operators[0]].query
                committed = stopped is not None and query not in stopped
                self._release(chain, work.train.rows, committed)
                ran += chain.operators
        self.time.settled(result, stopped)
        self._freed(result.unit, ran)
        if stopped is None:
            self._rest(result.retry or "", departure)
            self.policy.completed(self.board, ran)
            return
        self._pause, self._trouble = 0.0, None
        self._moved, self._tries = departure, 0
        self.overhead.add(result.overhead)
        self.board.overhead = self.overhead.seconds
        for done in result.chains:
            first, last = (self.board.operators[done.chain.operators[end]].node for end in (0, -1))
            if self.board.operators[first.number].query not in stopped:
                for run in done.operators:
                    self.board.operators[run.operator].statistics.add(run)
                self._record(done, departure, first, last)
        self.policy.completed(self.board, ran)

    def _record(self, done: ChainResult, departure: float, first: Node, last: Node) -> None:
        """Meters a chain: for its query, or for all queries that it was shared work of."""
        board = self.board
        state = board.queries[board.operators[first.number].query]
        # Whoever reads shared work has read its stream with it.
        starts = first.is_first and board.hidden(first.reads) is None
        if not state.query.hidden:
            self.meters.record(state.name, done, departure, starts=starts, ends=last.is_last)
            return
        for served in board.served_by(state):
            if not served.query.hidden and served.reason != DROPPED:
                self.meters.record(served.name, done, departure, starts=starts, ends=False)

    def _release(self, chain: Chain, rows: int, committed: bool) -> None:
        first = self.board.operators[chain.operators[0]]
        first.in_flight -= rows
        if committed:
            first.cursor += rows
        elif self.board.queries[first.query].reason != DROPPED:
            first.waiting += rows
            if first.waiting:
                first.head_arrival = self.log.arrival(first.node.reads, first.head)
        for number in chain.operators:
            operator = self.board.operators[number]
            operator.running -= 1
            self.board.refresh(operator)

    def _freed(self, unit: Unit, ran: Sequence[int]) -> None:
        """Tells the policy of the operators that had to wait for a fold of a unit that has ended."""
        if not unit.states:
            return
        queries = {self.board.operators[number].query for number in ran}
        waited = (operator.node.number for query in queries for operator in self.board.of(self.board.queries[query]))
        self.policy.arrived(self.board, [number for number in waited if number in self.board.ready])

    def _rest(self, why: str, now: float) -> None:
        """Gives the executor time to recover; a cancelled unit is nobody's fault."""
        if why != "cancelled":
            self._trouble = why
            self._tries += 1
            self._pause = min(LONGEST_PAUSE, 2 * self._pause or LOOK_AGAIN)
            self._pause_until = now + self._pause

    # Decisions

    def _dispatch(self) -> None:
        if self.clock.now() >= self._pause_until:
            self._follow_policy()
            self._read_ahead()

    def _follow_policy(self) -> None:
        board = self.board
        while board.idle_workers and (board.ready or self._steps) and self._stop != "now":
            if not self._steps:
                self._decide()
                if not self._steps:
                    return
            if any(fed_by_running(board, chain) for chain in self._steps[0].chains):
                return
            step = self._steps.popleft()
            unit = bind(
                board,
                step,
                self._unit_id(),
                self._most_rows,
                self.log.train,
                self.time.states,
                versions=self.log.versions,
            )
            if unit is not None:
                self._submit(unit)
            elif not self._steps:
                return

    def _read_ahead(self) -> None:
        """Begins the next trains of what is running, with workers for whom the policy has nothing.

        Only full trains: a shorter one grows while it waits, and costs as much overhead.
        """
        for line in self._running:
            if not self.board.idle_workers or self.board.ready or self._steps or self._stop == "now":
                return
            # As many as run, and as many that are done and wait for one before them.
            if len(line.units) < 2 * self.executor.slots and not line.broken:
                step = next_train(self.board, line.last, self._most_rows)
                unit = step and bind(
                    self.board,
                    step,
                    self._unit_id(),
                    self._most_rows,
                    self.log.train,
                    ahead=True,
                    versions=self.log.versions,
                )
                if unit:
                    self._submit(unit, line)

    def _decide(self) -> None:
        started = self._stopwatch()
        self.board.now = self.clock.now()
        self._steps.extend(self.policy.decide(self.board))
        self.meters.deciding(self._stopwatch() - started)

    def _submit(self, unit: Unit, line: Line | None = None) -> None:
        for work in unit.works:
            for chain in work.chains:
                first = self.board.operators[chain.operators[0]]
                first.in_flight += work.train.rows
                first.waiting -= work.train.rows
                waits = first.waiting > 0
                first.head_arrival = self.log.arrival(first.node.reads, first.head) if waits else math.inf
                for number in chain.operators:
                    operator = self.board.operators[number]
                    operator.running += 1
                    self.board.refresh(operator)
        self.time.began(unit)
        self._running.begin(unit, self.clock.now(), line)
        self.board.idle_workers -= 1
        self.executor.submit(unit)

    def _unit_id(self) -> str:
        return stamped(f"{self.log.epoch}-{next(self._units)}", self.log.commits)

    # Meters

    def snapshot(self) -> dict[str, Any]:
        """All meters now; see :meth:`freshet.quality.Meters.snapshot`. Only on the loop's own thread.

        ``trouble`` says why units are being tried again (a full disk, a lost cluster); None while all is well.
        """
        operators = {}
        for state in self.board.queries:
            if state.reason != DROPPED and not state.query.hidden:
                mine = [operator for each in (*self.board.works(state), state) for operator in self.board.of(each)]
                self.meters.wait(state.name, Waiting.in_queues(self._queues(mine, state)))
                self.meters.remember(state.name, self.time.memory(state))
                operators[state.name] = {operator.node.name: operator.statistics for operator in mine}
        running = self._running.running()
        meters = self.meters.snapshot(self.clock.now(), running=running, operators=operators, overhead=self.overhead)
        return meters | {"trouble": self._trouble}

    def _queues(self, operators: Sequence[OperatorState], state: QueryState) -> list[QueueLength]:
        """What waits at operators of a query and of the shared work before it."""
        if len(state.paths) > 1:
            return [self._queue(operator, self._later(operator)) for operator in operators]
        return [self._queue(operator, operators[place:]) for place, operator in enumerate(operators)]

    def _later(self, operator: OperatorState) -> list[OperatorState]:
        path = operator.path
        return [self.board.operators[number] for number in path[path.index(operator.node.number) :]]

    def _queue(self, operator: OperatorState, later: Sequence[OperatorState]) -> QueueLength:
        rows = operator.waiting + operator.in_flight
        if not rows:
            return QueueLength(0, 0, math.inf)
        stream, first = operator.node.reads, operator.cursor
        selectivity = math.prod(each.selectivity for each in later)
        size = self.log.bytes(stream, first, first + rows)
        return QueueLength(rows, size, self.log.arrival(stream, first), min(1.0, selectivity))


def _firsts(unit: Unit) -> Iterator[int]:
    """The operators that the chains of a unit begin with."""
    return (chain.operators[0] for work in unit.works for chain in work.chains)
