"""Admission: queries come and go while others run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from freshet.engine.arrivals import Arrivals
from freshet.engine.board import Board
from freshet.engine.clock import Clock
from freshet.engine.events import Added, Dropped, Observer, Promised, Quarantined
from freshet.engine.lines import Lines
from freshet.engine.protocols import Executor, QueueLog
from freshet.engine.states import OperatorState, QueryState
from freshet.model import Promises, Query, UserError
from freshet.policies import Policy
from freshet.quality import OperatorStatistics


class Admission(Arrivals):
    """Adds, changes and drops queries.

    Args:
        log: Where tuples wait.
        executor: Runs units.
        clock: Real or virtual.
        policy: Decides.
        observers: Are told what happens.
    """

    def __init__(
        self, log: QueueLog, executor: Executor, clock: Clock, policy: Policy, observers: Iterable[Observer]
    ) -> None:
        slots = executor.slots
        board = Board(log.bytes, executor.way, now=clock.now(), workers=slots, idle_workers=slots)
        super().__init__(log, clock, policy, board, observers)
        self.executor = executor
        self.schemas: dict[str, pa.Schema] = {}
        self._running = Lines()
        self._outdated: set[str] = set()
        """Units that run an operator for which there are more readers since."""

    def add_query(self, query: Query, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
        """Starts a query over streams of the given schemas; returns the schema of its output.

        Operators that others need, too, go on from where they are.
        """
        board, known = self.board, len(self.board.operators)
        self.schemas.update(schemas)
        state = board.add(query)
        try:
            outputs = self._install()
        except Exception:
            board.withdraw(state)
            raise
        self.schemas[query.name] = outputs[query.name]
        for operator in board.of(state):
            if operator.node.number >= known:
                self._start(operator, query)
            elif not self._serves_others(operator, state):
                self._start_again(operator, query)
        self._outdated |= self._running.of(number for number in state.operators if number < known)
        self._tell(Added(self.clock.now(), query.name, query.promises, self._streams(state)))
        self._take_up(state)
        self.policy.changed(board, len(board.queries) - 1)
        return outputs[query.name]

    def _install(self) -> Mapping[str, pa.Schema]:
        strict = {state.name for state in self.board.queries if state.query.on_error == "fail"}
        return self.executor.install(self.board.network, self.schemas, strict)

    def _serves_others(self, operator: OperatorState, state: QueryState) -> bool:
        return any(other.active for other in self.board.serving(operator) if other is not state)

    def _start(self, operator: OperatorState, query: Query) -> None:
        """Takes up an operator where its readers are."""
        for edge in operator.edges:
            at = "earliest" if edge.edge.kind == "queue" else query.start
            edge.cursor = self.log.start_reader(edge.edge.reader, edge.edge.stream, at, "operator", operator.node.query)
            edge.waiting = 0
        self.time.start(operator, self.executor.states)

    def _start_again(self, operator: OperatorState, query: Query) -> None:
        """Takes up an operator whose queries were all quarantined until now."""
        self._start(operator, query)
        for reader in _readers(operator):
            self.log.set_need(reader, True)

    def _streams(self, state: QueryState) -> tuple[str, ...]:
        edges = (edge.edge for operator in self.board.of(state) for edge in operator.edges)
        return tuple(dict.fromkeys(edge.stream for edge in edges if edge.kind != "queue"))

    def drop_query(self, name: str) -> None:
        """Ends a query; what it was running is given up, what it has written stays in its output, and its readers
        keep their place."""
        number, state = self._find(name)
        gone = self.board.drop(state)
        self.time.changed()
        self.log.park([reader for operator in gone for reader in _readers(operator)])
        self._tell(Dropped(self.clock.now(), name))
        self.policy.changed(self.board, number)

    def reform(self, queries: Sequence[Query], move: Callable[[], None]) -> None:
        """Has queries run in other forms of the same shape from now on; nothing may be running. Their meters go on.

        Args:
            queries: They, in their new forms.
            move: Brings their readers there.
        """
        board, known = self.board, len(self.board.operators)
        learned: dict[str, OperatorStatistics] = {}
        for query in queries:
            number, state = self._find(query.name)
            by_name = {operator.node.name: operator.statistics for operator in board.of(state)}
            old = (by_name[name] for name in state.query.graph.from_output)
            learned |= dict(zip(query.graph.from_output, old, strict=True))
            board.drop(state)
            self.policy.changed(board, number)
        move()
        first = len(board.queries)
        states = [board.add(query) for query in queries]
        self._install()
        started: set[int] = set(range(known))
        for state in states:
            for operator in board.of(state):
                if operator.node.number not in started:
                    started.add(operator.node.number)
                    operator.statistics = learned[operator.node.name]
                    self._start(operator, state.query)
            self._take_up(state)
        for number in range(first, len(board.queries)):
            self.policy.changed(board, number)

    def _take_up(self, state: QueryState) -> None:
        """Finds what waits for a query."""
        self.time.changed()
        for stream in dict.fromkeys(edge.edge.stream for operator in self.board.of(state) for edge in operator.edges):
            self._enqueue(stream)
        # Its output may take nothing, and what it reads may have been of no concern to anybody until now.
        self._look_again = -math.inf
        self._look_at_time(range(len(self.board.queries)))

    def set_promises(self, name: str, promises: Promises) -> None:
        """Promises something else to a query while it runs; with another curve its QoS is measured anew."""
        number, state = self._find(name)
        self.board.promise(state, promises)
        self._tell(Promised(self.clock.now(), name, promises))
        self.policy.changed(self.board, number)

    def quarantine(self, name: str, reason: str) -> None:
        """Stops a query that cannot go on; the others do."""
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


def _readers(operator: OperatorState) -> list[str]:
    """Readers of an operator: of its edges, and of what it remembers."""
    states = operator.fold.streams if operator.fold is not None else ()
    return [*(edge.edge.reader for edge in operator.edges), *states]
