"""A view of plain records, for tests and benchmarks of policies alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from freshet.model import InstanceInput, Promises, lead_to
from freshet.model.promises.promise import shared

_NOTHING_SPECIAL = Promises()


@dataclass(slots=True)
class OperatorRecord:
    """An operator as policies see it."""

    cost: float
    selectivity: float
    inputs: tuple[int, ...] = ()
    readers: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    queries: tuple[int, ...] = ()
    promises: Promises = _NOTHING_SPECIAL
    ports: int = 1
    kind: str = "filter"
    pending: int = 0
    head_arrival: float = math.inf
    bytes_waiting: int = 0
    size_in: float = 1.0
    size_out: float = 1.0
    came: int = 0
    left_behind: int = 0
    expiries: Sequence[float] = ()
    """When its waiting tuples expire, by rank."""

    def expiry(self, rank: int = 0) -> float:
        """When the waiting tuple of a rank expires."""
        return self.expiries[rank] if rank < len(self.expiries) else math.inf

    @property
    def mean_arrival(self) -> float:
        """Mean arrival of the waiting tuples, as if all had come with the first."""
        return self.head_arrival


@dataclass(slots=True)
class PolicyQuery:
    """A query as policies see it."""

    name: str
    operators: tuple[int, ...]
    root: int
    promises: Promises = _NOTHING_SPECIAL


@dataclass(slots=True)
class InstanceRecord:
    """An instance of a periodic query as policies see it; ``node`` reads the one stream of its query."""

    key: tuple[str, int]
    query: int
    release: float
    deadline: float
    rows: int = 0
    node: int = 0
    running: bool = False
    began: float = 0.0
    back: bool = False
    may_run: bool = True

    @property
    def inputs(self) -> tuple[InstanceInput, ...]:
        """What it sees of the stream."""
        return (InstanceInput(self.key[0], "s", self.node, 0, self.rows),)


@dataclass(slots=True)
class RecordView:
    """What the policy sees.

    >>> view = RecordView()
    >>> view.add("q", [(0.1, 0.5), (0.2, 1.0)])
    (0, 1)
    >>> view.operators[1].cost, view.operators[0].readers, view.queries[0].root
    (0.2, (1,), 1)
    """

    operators: list[OperatorRecord] = field(default_factory=list)
    queries: list[PolicyQuery] = field(default_factory=list)
    ready: dict[int, None] = field(default_factory=dict)
    now: float = 0.0
    deciding: float = 0.0
    seconds_per_step: float = 0.0
    workers: int = 1
    idle_workers: int = 1
    instances: list[InstanceRecord] = field(default_factory=list)

    def overhead(self, nodes: Collection[int] = ()) -> float:
        """Seconds that a step costs before it touches a tuple."""
        return self.seconds_per_step

    def add(
        self, name: str, operators: Sequence[tuple[float, float]], promises: Promises = _NOTHING_SPECIAL
    ) -> tuple[int, ...]:
        """Adds a query of one path, its operators given as (cost, selectivity); returns their numbers."""
        number, first = len(self.queries), len(self.operators)
        path = tuple(range(first, first + len(operators)))
        for place, (cost, selectivity) in zip(path, operators, strict=True):
            inputs, readers = path[: place - first][-1:], path[place - first + 1 :][:1]
            outputs = () if readers else (number,)
            self.operators.append(OperatorRecord(cost, selectivity, inputs, readers, outputs, (number,), promises))
        self.queries.append(PolicyQuery(name, path, path[-1], promises))
        return path

    @classmethod
    def over(
        cls, graph: Mapping[int, tuple[int, ...]], boxes: Mapping[int, tuple[float, float]] | None = None
    ) -> RecordView:
        """A graph, given by the readers of each operator from 0 on; whatever nobody reads is a query's root. ``boxes``
        have their (cost, selectivity); (1, 1) where there is none.

        >>> view = RecordView.over({0: (1, 2), 1: (), 2: ()})
        >>> [query.operators for query in view.queries], view.operators[0].queries
        ([(0, 1), (0, 2)], (0, 1))
        """
        view = cls([OperatorRecord(*(boxes or {}).get(number, (1.0, 1.0))) for number in range(len(graph))])
        for number, readers in graph.items():
            view.operators[number].readers = readers
            for reader in readers:
                view.operators[reader].inputs += (number,)
        for number, operator in enumerate(view.operators):
            operator.ports = max(1, len(operator.inputs))
            if not operator.readers:
                view._add_root(number)
        return view

    def _add_root(self, root: int) -> None:
        query = len(self.queries)
        self.queries.append(PolicyQuery(f"q{query}", lead_to(self, root), root))
        self.operators[root].outputs = (query,)
        for number in self.queries[-1].operators:
            self.operators[number].queries += (query,)

    def promise(self, query: int, promises: Promises) -> None:
        """Promises something to a query, and thereby to the work that it shares."""
        self.queries[query].promises = promises
        for operator in (self.operators[number] for number in self.queries[query].operators):
            each = [self.queries[number].promises for number in operator.queries]
            operator.promises = each[0] if len(each) == 1 else shared((promises, 0.0) for promises in each)
