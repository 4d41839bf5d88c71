"""A query as a prediction sees it: its queues hold expected numbers of tuples."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from freshet.model import InstanceView, OperatorView, QueryView, View

_LEAST: Final = 0.5
"""Expected number of tuples from which on an operator is ready."""


@dataclass(slots=True)
class ExpectedTuples:
    """Tuples that came together."""

    rows: float
    arrival: float


@dataclass(slots=True)
class PredictedOperator:
    """An operator with an expected queue. Everything else is as the view has it now.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); [number] = view.add("q", [(0.1, 0.5)])
    >>> each = PredictedOperator(view.operators[number], deque([ExpectedTuples(2.25, arrival=4.0)]), size=80.0)
    >>> each.pending, each.bytes_waiting, each.head_arrival
    (2, 180, 4.0)
    """

    known: OperatorView
    queue: deque[ExpectedTuples] = field(default_factory=deque)
    size: float = 1.0
    """Bytes of a tuple in its queue."""

    @property
    def rows(self) -> float:
        """Expected number of waiting tuples."""
        return math.fsum(batch.rows for batch in self.queue)

    @property
    def pending(self) -> int:
        return math.floor(self.rows + _LEAST)

    @property
    def bytes_waiting(self) -> int:
        return round(self.rows * self.size)

    @property
    def head_arrival(self) -> float:
        return self.queue[0].arrival if self.queue else math.inf

    @property
    def mean_arrival(self) -> float:
        rows = self.rows
        return math.fsum(batch.rows * batch.arrival for batch in self.queue) / rows if rows else math.inf

    @property
    def came(self) -> int:
        return self.known.came + self.pending

    def expiry(self, rank: int = 0) -> float:
        """Infinity: nobody asks a prediction when tuples expire."""
        return math.inf

    def take(self, most: float) -> list[ExpectedTuples]:
        """The first tuples of its queue, which leave it."""
        taken: list[ExpectedTuples] = []
        while self.queue and most > 0.0:
            batch = self.queue[0]
            rows = min(batch.rows, most)
            taken.append(ExpectedTuples(rows, batch.arrival))
            most -= rows
            batch.rows -= rows
            if batch.rows <= 0.0:
                self.queue.popleft()
        return taken

    left_behind = property(lambda self: self.known.left_behind)
    kind = property(lambda self: self.known.kind)
    ports = property(lambda self: self.known.ports)
    inputs = property(lambda self: self.known.inputs)
    readers = property(lambda self: self.known.readers)
    outputs = property(lambda self: self.known.outputs)
    queries = property(lambda self: self.known.queries)
    promises = property(lambda self: self.known.promises)
    size_in = property(lambda self: self.known.size_in)
    size_out = property(lambda self: self.known.size_out)
    cost = property(lambda self: self.known.cost)
    selectivity = property(lambda self: self.known.selectivity)


class PredictedView:
    """A view in which only the operators of one query have tuples; numbers are those of the present view."""

    def __init__(self, present: View, query: int) -> None:
        self.now, self.deciding = present.now, present.deciding
        self.queries: Sequence[QueryView] = present.queries
        self.own: dict[int, PredictedOperator] = {}
        self.operators: list[OperatorView] = list(present.operators)
        for number in present.queries[query].operators:
            self.own[number] = self.operators[number] = _now(present, number)
        self.ready: dict[int, None] = {}
        self.workers = self.idle_workers = present.workers
        self._overhead = present.overhead
        self.instances: Sequence[InstanceView] = ()

    def overhead(self, nodes: Collection[int] = ()) -> float:
        return self._overhead(nodes)

    def refresh(self, numbers: Collection[int], running: Mapping[int, object]) -> list[int]:
        """Brings operators into ``ready`` or out of it; returns those that have tuples and may run."""
        found = []
        for number in numbers:
            if self.own[number].pending and number not in running:
                self.ready.setdefault(number)
                found.append(number)
            else:
                self.ready.pop(number, None)
        return found


def _now(present: View, number: int) -> PredictedOperator:
    """An operator with what waits for it now; all of that counts as having come at its mean arrival, but the first
    tuple as having come when it did."""
    each = present.operators[number]
    if not each.pending or not math.isfinite(each.mean_arrival):
        return PredictedOperator(each, size=each.size_in)
    head = [ExpectedTuples(1.0, each.head_arrival)]
    rest = [ExpectedTuples(each.pending - 1.0, each.mean_arrival)] if each.pending > 1 else []
    return PredictedOperator(each, deque(head + rest), max(1.0, each.bytes_waiting / each.pending))
