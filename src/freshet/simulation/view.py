"""A view of plain records, for simulations and benchmarks that do not need the engine's board."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from freshet.model import Curve


@dataclass(slots=True)
class OperatorRecord:
    """As policies see an operator; only the first of a path has a queue."""

    query: int
    path: tuple[int, ...]
    cost: float
    selectivity: float
    pending: int = 0
    head_arrival: float = math.inf
    bytes_waiting: int = 0
    next: int = 0
    """Offset of the first waiting tuple."""
    arrival_sums: Sequence[float] = ()
    """Sum of the arrivals of all tuples before an offset, where they are known."""

    @property
    def mean_arrival(self) -> float:
        """Mean arrival of the waiting tuples; that of the first where the others are not known."""
        if not self.pending or not self.arrival_sums:
            return self.head_arrival
        return (self.arrival_sums[self.next + self.pending] - self.arrival_sums[self.next]) / self.pending


@dataclass(slots=True)
class QueryRecord:
    """As policies see a query."""

    name: str
    weight: float
    paths: tuple[tuple[int, ...], ...]
    deadline: float | None = None
    curve: Curve | None = None


@dataclass(slots=True)
class RecordView:
    """What the policy sees.

    >>> view = RecordView()
    >>> view.add("q", [(0.1, 0.5), (0.2, 1.0)])
    (0, 1)
    >>> view.operators[1].cost, view.queries[0].paths
    (0.2, ((0, 1),))
    """

    operators: list[OperatorRecord] = field(default_factory=list)
    queries: list[QueryRecord] = field(default_factory=list)
    ready: dict[int, None] = field(default_factory=dict)
    now: float = 0.0
    overhead: float = 0.0
    workers: int = 1
    idle_workers: int = 1

    def add(self, name: str, operators: Sequence[tuple[float, float]], weight: float = 1.0) -> tuple[int, ...]:
        """Adds a query of one path, its operators given as (cost, selectivity); returns their numbers."""
        number, first = len(self.queries), len(self.operators)
        path = tuple(range(first, first + len(operators)))
        self.operators += [OperatorRecord(number, path, cost, selectivity) for cost, selectivity in operators]
        self.queries.append(QueryRecord(name, weight, (path,)))
        return path
