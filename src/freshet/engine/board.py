"""The board: the engine's own record of what waits where, which policies read as their view."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from freshet.model import Curve, Fold, Network, Node, Query, Side
from freshet.quality import OperatorStatistics

DROPPED: Final = "dropped"
"""Reason of a query that was taken out."""

Size = Callable[[str, int, int], int]


@dataclass(slots=True, eq=False)
class FoldState:
    """A fold with its state: the range [low, end) of each of its state streams.

    Args:
        name: Its name.
        operator: What it does; of a join, one of its sides.
        query: Number of its query.
        ports: The operators that lead into it: of a join those of each side, else all of them together.
        streams: Its state streams.
        lows: Where the live range of each begins.
        seen: How far event time had come, by port, when it last ran; None: nothing was known.
        busy: Whether a unit is running it: its state is one thing, so only one may.
    """

    name: str
    operator: Fold
    query: int
    ports: tuple[tuple[int, ...], ...]
    streams: tuple[str, ...] = ()
    lows: list[int] = field(default_factory=list)
    seen: list[int | None] = field(default_factory=list)
    busy: bool = False


@dataclass(slots=True)
class OperatorState:
    """An operator with its queue: tuples [cursor, cursor + in flight) are being processed, ``waiting`` more wait."""

    node: Node
    query: int
    size: Size
    statistics: OperatorStatistics = field(default_factory=OperatorStatistics)
    cursor: int = 0
    in_flight: int = 0
    waiting: int = 0
    closing: bool = False
    """Whether its fold has something to give out although no tuple waits, because event time went on."""
    pending: int = 0
    """What a policy sees: the waiting tuples, or one where it is only closing; :meth:`Board.refresh` sets it."""
    head_arrival: float = math.inf
    tail_arrival: float = math.inf
    running: int = 0
    """Units that it is part of now."""
    folds: tuple[FoldState, ...] = ()
    """Folds at or behind it on its path."""
    mark: int | None = None
    """Event time, as far as it is known to have come in front of it."""

    @property
    def busy(self) -> bool:
        """Whether it is running."""
        return self.running > 0

    @property
    def path(self) -> tuple[int, ...]:
        """Numbers of the operators of its path."""
        return self.node.path

    @property
    def cost(self) -> float:
        """Seconds per tuple."""
        return self.statistics.cost

    @property
    def selectivity(self) -> float:
        """Tuples out per tuple in."""
        return self.statistics.selectivity

    @property
    def head(self) -> int:
        """Offset of the first waiting tuple."""
        return self.cursor + self.in_flight

    @property
    def mean_arrival(self) -> float:
        """Mean arrival of the waiting tuples, as if they had come evenly from the first to the last."""
        return (self.head_arrival + self.tail_arrival) / 2.0 if self.pending else math.inf

    @property
    def bytes_waiting(self) -> int:
        """Bytes of the waiting tuples."""
        return self.size(self.node.reads, self.head, self.head + self.waiting) if self.waiting else 0


@dataclass(slots=True)
class QueryState:
    """A query as the engine runs it."""

    query: Query
    paths: tuple[tuple[int, ...], ...]
    weight: float
    active: bool = True
    reason: str | None = None
    """Why it is not active."""
    held: str | None = None
    """Why its output takes nothing now."""

    @property
    def may_run(self) -> bool:
        """Whether its operators may be scheduled."""
        return self.active and self.held is None

    @property
    def name(self) -> str:
        """Its name."""
        return self.query.name

    @property
    def deadline(self) -> float | None:
        """Seconds after release by which an answer is due."""
        return self.query.deadline

    @property
    def curve(self) -> Curve | None:
        """What its answers are worth by their latency."""
        return self.query.curve


@dataclass(slots=True)
class Board:
    """All operators and queries, their queues, and which of them may run."""

    size: Size
    network: Network = field(default_factory=Network)
    operators: list[OperatorState] = field(default_factory=list)
    queries: list[QueryState] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    """Numbers of the queries that were not dropped, by name."""
    stopped: set[int] = field(default_factory=set)
    """Numbers of the queries that were dropped or quarantined."""
    folds: dict[str, FoldState] = field(default_factory=dict)
    """Folds of the queries that were not dropped, each behind those that lead into it."""
    lookups: dict[int, str] = field(default_factory=dict)
    """Operators that join with a table, and the table."""
    ready: dict[int, None] = field(default_factory=dict)
    readers: dict[str, list[int]] = field(default_factory=dict)
    """Operators that read a stream."""
    now: float = 0.0
    overhead: float = 0.0
    workers: int = 1
    idle_workers: int = 0

    def add(self, query: Query) -> QueryState:
        """Numbers a query and its operators."""
        state = QueryState(query, self.network.add(query), query.weight)
        for node in self.network.nodes[len(self.operators) :]:
            self.operators.append(OperatorState(node, len(self.queries), self.size))
            self.readers.setdefault(node.reads, []).append(node.number)
            if node.operator.reads_table is not None:
                self.lookups[node.number] = node.operator.reads_table
        self._add_folds(state, len(self.queries))
        self.numbers[query.name] = len(self.queries)
        self.queries.append(state)
        return state

    def _add_folds(self, state: QueryState, query: int) -> None:
        depths: dict[str, int] = {}
        for path in state.paths:
            folds = [fold for number in path if (fold := self.fold(number)) is not None]
            for depth, fold in enumerate(folds):
                depths[fold.fold] = max(depth, depths.get(fold.fold, 0))
        for name in sorted(depths, key=depths.__getitem__):
            self.folds[name] = self._fold_state(name, query)
        for path in state.paths:
            behind: tuple[FoldState, ...] = ()
            for number in reversed(path):
                operator = self.fold(number)
                behind = behind if operator is None else (self.folds[operator.fold], *behind)
                self.operators[number].folds = behind

    def _fold_state(self, name: str, query: int) -> FoldState:
        numbers = self.network.ports(name)
        operators = {number: self.fold(number) for number in numbers}
        [*_, operator] = operators.values()
        assert operator is not None
        if not isinstance(operator, Side):
            return FoldState(name, operator, query, (numbers,))
        sides = {number: side.port for number, side in operators.items() if isinstance(side, Side)}
        ports = tuple(tuple(number for number in numbers if sides[number] == port) for port in (0, 1))
        return FoldState(name, operator, query, ports)

    def fold(self, number: int) -> Fold | None:
        """The fold that an operator is, if it is one."""
        operator = self.network.nodes[number].operator
        return operator if isinstance(operator, Fold) else None

    def withdraw(self, state: QueryState) -> None:
        """Undoes the latest :meth:`add`: nobody has seen its numbers yet, so they are free again."""
        first = state.paths[0][0]
        for operator in self.operators[first:]:
            self.readers[operator.node.reads].remove(operator.node.number)
        self.network.drop(state.name)
        del self.operators[first:], self.network.nodes[first:]
        self.lookups = {number: table for number, table in self.lookups.items() if number < first}
        self.queries.remove(state)
        del self.numbers[state.name]
        self._drop_folds(len(self.queries))

    def drop(self, state: QueryState) -> None:
        """Takes a query out; its numbers stay behind."""
        self.network.drop(state.name)
        self.deactivate(state, DROPPED)
        self._drop_folds(self.numbers.pop(state.name))
        for operator in self.of(state):
            self.readers[operator.node.reads].remove(operator.node.number)

    def _drop_folds(self, query: int) -> None:
        self.folds = {name: fold for name, fold in self.folds.items() if fold.query != query}

    def deactivate(self, state: QueryState, reason: str) -> None:
        """Keeps a query from running."""
        state.active, state.reason = False, reason
        self.stopped.add(self.numbers[state.name])
        for operator in self.of(state):
            self.ready.pop(operator.node.number, None)

    def of(self, state: QueryState) -> Iterable[OperatorState]:
        """The operators of a query."""
        return (self.operators[number] for path in state.paths for number in path)

    def hidden(self, stream: str) -> QueryState | None:
        """The shared work whose output a stream is, if it is one."""
        number = self.numbers.get(stream)
        state = None if number is None else self.queries[number]
        return state if state is not None and state.query.hidden else None

    def works(self, state: QueryState) -> list[QueryState]:
        """The shared work that a query reads, each after the one that it reads."""
        found: list[QueryState] = []
        work = self.hidden(state.query.graph.streams[0])
        while work is not None:
            found.insert(0, work)
            work = self.hidden(work.query.graph.streams[0])
        return found

    def sources(self, state: QueryState) -> tuple[str, ...]:
        """The streams that a query reads, by itself or through shared work."""
        works = self.works(state)
        return works[0].query.graph.streams if works else state.query.graph.streams

    def served_by(self, work: QueryState) -> list[QueryState]:
        """The queries that read shared work, directly or not, other shared work among them."""
        found: list[QueryState] = []
        for number in self.readers.get(work.name, ()):
            reader = self.queries[self.operators[number].query]
            found += [reader, *self.served_by(reader)] if reader.query.hidden else [reader]
        return found

    def refresh(self, operator: OperatorState) -> None:
        """Puts an operator into or out of ``ready`` after its queue changed."""
        number = operator.node.number
        operator.pending = operator.waiting or int(operator.closing)
        free = not operator.busy and not (operator.folds and any(fold.busy for fold in operator.folds))
        if operator.pending and free and self.queries[operator.query].may_run:
            self.ready.setdefault(number)
        else:
            self.ready.pop(number, None)
