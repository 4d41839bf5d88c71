"""Admission: takes in tuples and event time from the log, and queries, which come and go while others run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from freshet.engine.binding import queued, trains_of
from freshet.engine.board import Board
from freshet.engine.clock import Clock
from freshet.engine.events import Added, Arrived, Dropped, Event, Held, Observer, Promised, Quarantined, Thinned
from freshet.engine.lines import Lines
from freshet.engine.optimizer.thinning import Thinning
from freshet.engine.periodic.releases import Releases
from freshet.engine.protocols import Executor, QueueLog
from freshet.engine.resting import Resting
from freshet.engine.states import EdgeState, FoldState, OperatorState, QueryState
from freshet.engine.timekeeper import Timekeeper
from freshet.log.errors import LogFull
from freshet.log.kinds import ReaderKind
from freshet.model import Commit, Promises, Query, Shed, Unit, UserError
from freshet.policies import Policy
from freshet.quality import OperatorStatistics

LOOK_AGAIN: Final = 0.1
"""Seconds after which outputs that were held back, and policies that declined to run anything, are asked again."""
MOST_ASKS: Final = 2
"""Maximum number of decisions in a row that lead to no unit; then the policy is asked again when something changes."""
LEARN_AGAIN: Final = 5.0
"""Seconds after which the promises of shared work are worked out again, from the costs learned by then."""


class Admission:
    """Adds, changes and drops queries, and brings the board up to date with the log."""

    def __init__(
        self, log: QueueLog, executor: Executor, clock: Clock, policy: Policy, observers: Iterable[Observer]
    ) -> None:
        self.log, self.executor, self.clock, self.policy = log, executor, clock, policy
        slots = executor.slots
        self.board = Board(log.bytes, executor.way, log.expiry, now=clock.now(), workers=slots, idle_workers=slots)
        self.time = Timekeeper(self.board, log, executor.parts)
        self.observers = list(observers)
        self.schemas: dict[str, pa.Schema] = {}
        self.thinning = Thinning(self.board, self.schemas)
        self.releases = Releases(self.board, log, self.time)
        self.resting = Resting(self.board, log)
        self._running = Lines()
        self._outdated: set[str] = set()
        """Units that must run again: since they began, one of their operators has gained or lost a reader."""
        self._held: Mapping[str, str] = {}
        self._look_again = self._tell_again = self._learn_again = -math.inf

    def _tell(self, event: Event) -> None:
        for observer in self.observers:
            observer.tell(event)

    # Queries

    def add_query(self, query: Query, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
        """Starts a query over streams of the given schemas; returns the schema of its output.

        Operators that other queries already run continue from where they are.
        """
        board = self.board
        self.schemas.update(schemas)
        state = board.add(query)
        try:
            outputs = self._install()
        except Exception:
            board.drop(state)
            raise
        self.schemas[query.name] = outputs[query.name]
        new = board.own([state])
        self._size(new)
        for operator in board.of(state):
            if operator in new:
                self._start(operator)
            elif not any(other.active for other in board.serving(operator) if other is not state):
                # All of its queries were quarantined until now.
                self._start(operator)
                for reader in _readers(operator):
                    self.log.set_need(reader, True)
        there = set(state.operators).difference(each.node.number for each in new)
        self._outdated |= self._running.where(lambda unit: not there.isdisjoint(unit.nodes))
        self._tell(Added(self.clock.now(), query.name, query.promises, query.graph.streams))
        self._take_up(state)
        if query.is_periodic:
            self._start_releases(state)
        self.policy.changed(board, board.numbers[query.name])
        return outputs[query.name]

    def _install(self) -> Mapping[str, pa.Schema]:
        return self.executor.install(self.board.network, self.schemas, self.board.strict)

    def _size(self, operators: Iterable[OperatorState]) -> None:
        for operator in operators:
            operator.size_in, operator.size_out = self.executor.sizes(operator.node.number)

    def _start(self, operator: OperatorState) -> None:
        """Takes up an operator where its readers are."""
        start = next(self.board.serving(operator)).query.start
        for edge in operator.edges:
            at = "earliest" if edge.edge.kind == "queue" else start
            kind: ReaderKind = "operator" if edge.window is None or edge.window.passes else "window"
            edge.cursor = self.log.start_reader(edge.edge.reader, edge.edge.stream, at, kind, operator.node.query)
            edge.waiting = 0
        if isinstance(operator, FoldState):
            self.time.start(operator)

    def _start_releases(self, state: QueryState) -> None:
        self.releases.start(state)

    def drop_query(self, name: str) -> None:
        """Ends a query: its running work is given up, its output stays, and its readers keep their place."""
        number, state = self._find(name)
        self._outdated |= self._running.where(lambda unit: self._writes_for(unit, state))
        self.thinning.forget(state)
        self.releases.drop(name)
        gone = self.board.drop(state)
        self.time.changed()
        self.resting.changed()
        self.log.park([reader for operator in gone for reader in _readers(operator)])
        self._tell(Dropped(self.clock.now(), name))
        self.policy.changed(self.board, number)

    def _writes_for(self, unit: Unit, state: QueryState) -> bool:
        """Whether shared operators of a unit write to the output or to a queue of a query. If the query came back, it
        would begin where the unit began, and read the same again."""
        streams = {state.name, *(edge.edge.stream for each in self.board.of(state) for edge in each.edges)}
        shared = (chain for chain in unit.chains if len(self.board.operators[chain.nodes[-1]].queries) > 1)
        return any(not streams.isdisjoint(chain.writes) for chain in shared)

    def reform(self, queries: Sequence[Query], move: Callable[[], None]) -> None:
        """Switches queries to other forms of the same shape; ``move`` brings their readers there. Nothing may be
        running. Their meters continue."""
        board = self.board
        learned: dict[str, OperatorStatistics] = {}
        for query in queries:
            number, state = self._find(query.name)
            by_name = {operator.node.name: operator.statistics for operator in board.of(state)}
            old = (by_name[name] for name in state.query.graph.from_output)
            learned |= dict(zip(query.graph.from_output, old, strict=True))
            board.drop(state)
            self.policy.changed(board, number)
        move()
        states = [board.add(query) for query in queries]
        self._install()
        self._size(own := board.own(states))
        for operator in own:
            operator.statistics = learned[operator.node.name]
            self._start(operator)
        for state in states:
            self._take_up(state)
        for query in queries:
            self.policy.changed(board, board.numbers[query.name])

    def _take_up(self, state: QueryState) -> None:
        """Finds what waits for a query."""
        self.thinning.apply(state)
        self.time.changed()
        self.resting.changed()
        edges = [edge for each in self.board.of(state) for edge in each.edges if edge.window is None]
        for stream in dict.fromkeys(edge.edge.stream for edge in edges):
            self._enqueue(stream, [edge for edge in edges if edge.edge.stream == stream])
        # Its output may be full, and the event time of what it reads may have concerned nobody until now.
        self._look_again = -math.inf
        self._look_at_time(self.time.leading_to([self.board.numbers[state.name]]))

    def set_promises(self, name: str, promises: Promises) -> None:
        """Changes the promises of a query while it runs; with another curve its QoS is measured anew."""
        number, state = self._find(name)
        self.board.promise(state, promises)
        self.thinning.promised(state)
        self._tell(Promised(self.clock.now(), name, promises))
        self.policy.changed(self.board, number)

    def shed(self, action: Shed) -> None:
        """Keeps a share of what comes in for a query, from the next unit on.

        Raises:
            UserError: There is no such query, or it may not be thinned.
        """
        _, state = self._find(action.query)
        before = self.thinning.sheds.get(action.query)
        self.thinning.shed(action, state)
        if self.thinning.sheds.get(action.query) != before:
            self._tell(Thinned(self.clock.now(), action))

    def quarantine(self, name: str, reason: str) -> None:
        """Stops a query that cannot continue; the others do."""
        number, state = self._find(name)
        for operator in self.board.deactivate(state, reason):
            for reader in _readers(operator):
                self.log.set_need(reader, False)
        self._tell(Quarantined(self.clock.now(), name, reason))
        self.policy.changed(self.board, number)

    def _find(self, name: str) -> tuple[int, QueryState]:
        number = self.board.numbers.get(name)
        if number is None:
            raise UserError(f"there is no query {name!r}")
        return number, self.board.queries[number]

    # Tuples

    def _take_arrivals(self, ran: Iterable[int] = ()) -> None:
        """Takes in what has come, then looks at event time for its readers and for the queries that ``ran``."""
        self.board.now = self.clock.now()
        self._take_in(ran)
        while self._tell_time():
            self._take_in()
        if self.board.now >= self._look_again:
            self._look_again = self.board.now + LOOK_AGAIN
            self._look_at_outputs()
        if self.board.now >= self._learn_again:
            self._learn_again = self.board.now + LEARN_AGAIN
            for query in self.board.learn():
                self.policy.changed(self.board, query)

    def _take_in(self, ran: Iterable[int] = ()) -> None:
        grown = self.log.grown()
        for stream in grown:
            if edges := self.board.readers.get(stream):
                self._enqueue(stream, edges)
        for edge in self.resting.brought_on(grown):
            edge.let_on = edge.let_on if edge.waiting else self.board.now
            self._enqueue(edge.edge.stream, [edge])
        # Only now is every committed tuple in the queue that it waits in.
        self._look_at_time(ran, grown)

    def _enqueue(self, stream: str, edges: Sequence[EdgeState]) -> None:
        end = self.log.end(stream)
        grown = {edge: until for edge in edges if edge.end < end and edge.end < (until := self.resting.end(edge, end))}
        if grown:
            lasts = {until: self.log.arrival(stream, until - 1) for until in set(grown.values())}
            # Most readers of a stream are at the same tuple, and there may be a thousand of them.
            heads = {edge.head for edge in grown if not edge.waiting}
            arrivals = {head: self.log.arrival(stream, head) for head in heads}
            for edge, until in grown.items():
                self._add_waiting(edge, until - edge.end, arrivals, lasts[until])
            came = tuple(dict.fromkeys(edge.edge.node for edge in grown))
            self.policy.arrived(self.board, came)
            self._tell(Arrived(self.board.now, stream, end, came))

    def _add_waiting(self, edge: EdgeState, rows: int, arrivals: Mapping[int, float], last_arrival: float) -> None:
        if not edge.waiting:
            edge.head_arrival = max(arrivals[edge.head], edge.let_on)
        edge.waiting += rows
        edge.tail_arrival = last_arrival
        self.board.refresh(self.board.operators[edge.edge.node])

    def _look_at_head(self, edge: EdgeState) -> None:
        arrival = self.log.arrival(edge.edge.stream, edge.head) if edge.waiting else math.inf
        edge.head_arrival = max(arrival, edge.let_on)

    def _release(self, unit: Unit, effect: set[int]) -> None:
        """Takes the tuples of a unit out of what is in progress: they are done if their chain is among those that took
        effect, else they wait again."""
        board = self.board
        for chain in unit.chains:
            for edge, train in queued(trains_of(board, chain)):
                edge.in_flight -= train.rows
                if id(chain) in effect:
                    edge.cursor += train.rows
                    edge.apart = edge.apart and not train.rows
                elif board.operators[edge.edge.node].queries:
                    edge.waiting += train.rows
                    self._look_at_head(edge)
            board.count(chain, -1)

    def _freed(self, nodes: Sequence[int]) -> None:
        """Tells the policy which operators are ready again because a fold has ended."""
        folds = self.board.folds(nodes)
        waited = dict.fromkeys(number for fold in folds for number in (*fold.before, fold.node.number))
        self.policy.arrived(self.board, [number for number in waited if number in self.board.ready])

    # Event time

    def _look_at_time(self, queries: Iterable[int], streams: Iterable[str] = ()) -> None:
        """Finds the windows that event time has passed."""
        closing = [*self.time.look(queries), *self.time.moved(streams)]
        if closing:
            self.policy.arrived(self.board, closing)

    def _tell_time(self, at_once: bool = False) -> bool:
        """Tells readers of outputs how far event time is if no unit has; not too often, unless ``at_once``."""
        if not self.time.news or not (at_once or self.board.now >= self._tell_again):
            return False
        self._tell_again = self.board.now + LOOK_AGAIN
        try:
            self.log.commit([Commit(watermarks=tuple(self.time.news.items()))])
        except LogFull:
            return False
        self.time.news.clear()
        return True

    # Outputs

    def _look_at_outputs(self) -> None:
        """Holds back whatever writes to an output or a queue that takes nothing now, and lets the rest continue."""
        held = self.log.held()
        changed: dict[int, None] = {}
        for stream in {*held, *self._held}:
            changed |= dict.fromkeys(self.board.hold_back(stream, held))
            reason, number = held.get(stream), self.board.numbers.get(stream)
            if number is not None and self.board.queries[number].held != reason:
                self.board.hold(self.board.queries[number], reason)
                self._tell(Held(self.board.now, stream, (stream,), reason))
            elif number is None and self._held.get(stream) != reason and (writers := self.board.writing(stream)):
                self._tell(Held(self.board.now, stream, writers, reason))
        for query in changed:
            self.policy.changed(self.board, query)
        self._held = dict(held)


def _readers(operator: OperatorState) -> list[str]:
    """The readers of an operator's edges, and of what it remembers."""
    states = operator.lows if isinstance(operator, FoldState) else ()
    return [*(edge.edge.reader for edge in operator.edges), *states]
