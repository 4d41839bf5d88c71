"""The board: the engine's own record of what waits where, which policies read as their view."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from freshet.model import Curve, Network, Node, Query
from freshet.quality import OperatorStatistics

DROPPED: Final = "dropped"
"""Reason of a query that was taken out."""

Size = Callable[[str, int, int], int]


@dataclass(slots=True)
class OperatorState:
    """An operator with its queue: tuples [cursor, cursor + in flight) are being processed, ``pending`` more wait."""

    node: Node
    query: int
    size: Size
    statistics: OperatorStatistics = field(default_factory=OperatorStatistics)
    cursor: int = 0
    in_flight: int = 0
    pending: int = 0
    head_arrival: float = math.inf
    tail_arrival: float = math.inf
    busy: bool = False

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
        return self.size(self.node.reads, self.head, self.head + self.pending) if self.pending else 0


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
    ready: dict[int, None] = field(default_factory=dict)
    readers: dict[str, list[int]] = field(default_factory=dict)
    """Operators that read a stream."""
    now: float = 0.0
    overhead: float = 0.0
    idle_workers: int = 0

    def add(self, query: Query) -> QueryState:
        """Numbers a query and its operators."""
        state = QueryState(query, self.network.add(query), query.weight)
        for node in self.network.nodes[len(self.operators) :]:
            self.operators.append(OperatorState(node, len(self.queries), self.size))
            self.readers.setdefault(node.reads, []).append(node.number)
        self.numbers[query.name] = len(self.queries)
        self.queries.append(state)
        return state

    def withdraw(self, state: QueryState) -> None:
        """Undoes the latest :meth:`add`: nobody has seen its numbers yet, so they are free again."""
        first = state.paths[0][0]
        for operator in self.operators[first:]:
            self.readers[operator.node.reads].remove(operator.node.number)
        del self.operators[first:], self.network.nodes[first:]
        self.queries.remove(state)
        del self.numbers[state.name]
        self.network.drop(state.name)

    def drop(self, state: QueryState) -> None:
        """Takes a query out; its numbers stay behind."""
        self.network.drop(state.name)
        self.deactivate(state, DROPPED)
        del self.numbers[state.name]
        for operator in self.of(state):
            self.readers[operator.node.reads].remove(operator.node.number)

    def deactivate(self, state: QueryState, reason: str) -> None:
        """Keeps a query from running."""
        state.active, state.reason = False, reason
        self.stopped.add(self.numbers[state.name])
        for operator in self.of(state):
            self.ready.pop(operator.node.number, None)

    def of(self, state: QueryState) -> Iterable[OperatorState]:
        """The operators of a query."""
        return (self.operators[number] for path in state.paths for number in path)

    def refresh(self, operator: OperatorState) -> None:
        """Puts an operator into or out of ``ready`` after its queue changed."""
        number = operator.node.number
        if operator.pending and not operator.busy and self.queries[operator.query].may_run:
            self.ready.setdefault(number)
        else:
            self.ready.pop(number, None)
