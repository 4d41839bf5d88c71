"""What the engine keeps of each edge, operator, fold and query."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from freshet.engine.periodic.kept_panes import KeptPanes
from freshet.model import (
    Edge,
    InputWindow,
    Instance,
    InstanceInput,
    InstanceRun,
    Keep,
    NetworkNode,
    Promises,
    Query,
)
from freshet.quality import OperatorStatistics

Size = Callable[[str, int, int], int]
"""Bytes of a range of a stream."""
Expires = Callable[[str, int], float]
"""When the tuple at an offset of a stream expires, in seconds."""


@dataclass(slots=True, eq=False)
class EdgeState:
    """An edge with its queue: tuples [cursor, cursor + in flight) are being processed, ``waiting`` more wait.

    >>> edge = EdgeState(Edge(0, 0, "stream", "s", "q.filter_1"), cursor=4, in_flight=2, waiting=3)
    >>> edge.head, edge.end
    (6, 9)
    """

    edge: Edge
    cursor: int = 0
    in_flight: int = 0
    waiting: int = 0
    head_arrival: float = math.inf
    """Arrival of the first waiting tuple; infinity if none waits."""
    tail_arrival: float = math.inf
    mark: int | None = None
    """Event time, as far as it is known to have come there."""
    apart: bool = False
    """Whether it must not be fused: its two ends failed together, and nobody knows which was at fault."""
    keep: Keep | None = None
    """What is kept of its tuples; None: all."""
    by_key: bool = False
    """Whether the marks of an ordered key take the place of event time, and tuples past them do not count."""
    rests: bool = False
    """Whether its cursor may rest: see :mod:`~freshet.engine.resting`."""
    let_on: float = -math.inf
    """When tuples that rested were let on: since then they have waited."""
    join: str = ""
    """The join behind it that has a bound on its memory, if there is one."""
    window: InputWindow | None = None
    """What an instance of a periodic query sees there. Such an edge has no queue: its cursor says which tuples are not
    needed any more."""

    @property
    def head(self) -> int:
        """Offset of the first waiting tuple."""
        return self.cursor + self.in_flight

    @property
    def end(self) -> int:
        """Offset behind the last waiting tuple."""
        return self.cursor + self.in_flight + self.waiting


@dataclass(slots=True, eq=False)
class OperatorState:
    """An operator in its place, as policies see it. :meth:`Board.refresh` keeps the sums over its edges up to date, so
    that looking at them costs nothing."""

    node: NetworkNode
    size: Size
    expires: Expires
    edges: tuple[EdgeState, ...]
    kind: str
    ports: int
    inputs: tuple[int, ...]
    before: tuple[int, ...] = ()
    """All operators in front of it."""
    out: tuple[EdgeState, ...] = ()
    """The edges that read it."""
    readers: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    queries: tuple[int, ...] = ()
    promises: Promises = field(default_factory=Promises)
    statistics: OperatorStatistics = field(default_factory=OperatorStatistics)
    folds: tuple[FoldState, ...] = ()
    """Folds behind it."""
    active: bool = True
    """Whether one of its queries is active."""
    may_run: bool = True
    """Whether one of its queries may run, and nothing that it writes to is over its bound."""
    held: bool = False
    """Whether a stream that it writes to is over its bound."""
    running: int = 0
    """Units that it is part of now."""
    closing: bool = False
    """Whether it has something to output although no tuple waits, because event time has moved on."""
    closing_since: float = math.inf
    waiting: int = 0
    pending: int = 0
    counts: bool = False
    """Whether something waits for it, and it may run: then the board counts it."""
    head_arrival: float = math.inf
    size_in: float = 1.0
    size_out: float = 1.0

    @property
    def cost(self) -> float:
        return self.statistics.expected_cost

    @property
    def selectivity(self) -> float:
        return self.statistics.selectivity

    @property
    def mean_arrival(self) -> float:
        """Mean arrival of the waiting tuples, as if those of an edge had come evenly from the first to the last."""
        if not self.waiting:
            return self.head_arrival
        if len(self.edges) == 1:
            return (self.edges[0].head_arrival + self.edges[0].tail_arrival) / 2
        middles = ((edge.head_arrival + edge.tail_arrival) / 2 * edge.waiting for edge in self.edges if edge.waiting)
        return sum(middles) / self.waiting

    @property
    def left_behind(self) -> int:
        return 0

    @property
    def came(self) -> int:
        return sum([edge.end for edge in self.edges])

    def expiry(self, rank: int = 0) -> float:
        """When the waiting tuple of a rank expires; with several queues, the least over them."""
        there = [edge for edge in self.edges if edge.waiting > rank]
        return min([self.expires(edge.edge.stream, edge.head + rank) for edge in there], default=math.inf)

    @property
    def bytes_waiting(self) -> int:
        return sum(self.size(edge.edge.stream, edge.head, edge.end) for edge in self.edges if edge.waiting)


@dataclass(slots=True, eq=False)
class FoldState(OperatorState):
    """A fold, with what it remembers: the range [low, end) of each of its state streams.

    Its state lies in some number of parts, by key. The streams of all numbers of parts that it ever had are there, but
    only those of the present one hold rows: a unit that divides it anew empties the others in the same commit.
    """

    lows: dict[str, int] = field(default_factory=dict)
    streams: int = 0
    """State streams of each part."""
    parts: int = 1
    present: tuple[str, ...] = ()
    """The state streams of its parts: first those of the first part."""
    seen: list[int | None] = field(default_factory=list)
    """How far event time had come, by port, when it last ran; None: nothing was known."""


@dataclass(slots=True, eq=False)
class QueryState:
    """A query as the engine runs it."""

    query: Query
    operators: tuple[int, ...]
    root: int
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
        return self.query.name

    @property
    def promises(self) -> Promises:
        return self.query.promises


@dataclass(slots=True, eq=False)
class WaitingInstance:
    """An instance of a periodic query that is not answered yet, as policies see it."""

    record: Instance
    query: int
    windows: tuple[tuple[EdgeState, int], ...]
    """The edges from streams and outputs, each with the first offset that it sees there, or -1: the edge's cursor."""
    running: bool = False
    may_run: bool = False
    since: float = 0.0
    """When its release was taken, and its sample."""
    began: float = 0.0
    """When the engine turned to it."""
    back: bool = False
    """Whether its unit has run and is not committed yet."""
    run: InstanceRun | None = None
    """How it runs now, or ran at last."""
    panes: Mapping[str, KeptPanes] = field(default_factory=dict)
    """What the panes of its windows kept, by the names of edges that lead to them."""
    moves: tuple[tuple[EdgeState, int], ...] = ()
    """Where its commit moves the cursors of its edges."""

    @property
    def key(self) -> tuple[str, int]:
        return self.record.key

    @property
    def release(self) -> float:
        return self.record.release / 1e6

    @property
    def deadline(self) -> float:
        return self.record.deadline / 1e6

    @property
    def inputs(self) -> tuple[InstanceInput, ...]:
        """What it sees of each edge."""
        return tuple(self._input(edge.edge, max(first, edge.cursor)) for edge, first in self.windows)

    def _input(self, edge: Edge, at: int) -> InstanceInput:
        end, panes = self.record.ends[edge.reader], self.panes.get(edge.reader)
        earlier, kept = (0, 1.0) if panes is None else panes.before(self.record.release)
        return InstanceInput(edge.reader, edge.stream, edge.node, min(at, end), end, earlier, kept)
