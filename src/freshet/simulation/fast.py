"""The engine's schedule without the engine's bookkeeping: the results of a world of one worker, many times faster."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean

from freshet.engine.admission import LOOK_AGAIN, MOST_ASKS
from freshet.engine.binding import MadeUp, bind
from freshet.engine.board import Board
from freshet.model import Chain, InstanceView, QueryView, RunStep, Shed, Step, UserError
from freshet.policies import Policy
from freshet.quality import OperatorStatistics, OverheadStatistics
from freshet.simulation.chains import (
    CountedChain,
    FastChain,
    FastEdge,
    FastOperator,
    FastTuples,
    ListedChain,
    events_of,
)
from freshet.simulation.executor import Departs, Profile, way_of
from freshet.simulation.log import TUPLE_BYTES, expiries_of
from freshet.simulation.outcome import Departed, Floats, SimulationOutcome, Work, outcome
from freshet.simulation.record import joined, operations
from freshet.simulation.world import SimulatedQuery, profiles_of


@dataclass(slots=True)
class _View:
    """What the policy sees."""

    operators: list[FastOperator]
    queries: Sequence[QueryView]
    board: Board
    ready: dict[int, None] = field(default_factory=dict)
    now: float = 0.0
    deciding: float = 0.0
    workers: int = 1
    idle_workers: int = 1
    instances: Sequence[InstanceView] = ()

    def overhead(self, nodes: Collection[int] = ()) -> float:
        return self.board.overhead(nodes)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Operators that run together, cut into chains as the engine cuts them."""

    nodes: tuple[int, ...]
    chains: tuple[FastChain, ...]
    fused: tuple[FastEdge, ...]

    def fits(self) -> bool:
        """Whether all of them would run now, in exactly this way."""
        for edge in self.fused:
            if edge.end != edge.next:
                return False
        for chain in self.chains:  # noqa: SIM110 (faster)
            # Chains that others feed run together with those.
            if not chain.first.pending and not chain.fed:
                return False
        return True


class FastWorld:
    """Gives the results of :class:`~freshet.simulation.world.World` with one worker and known costs, many times faster.

    It calls the same policy objects with an equal view and the same notices in the same order, cuts steps into chains
    with the engine's own code, and draws the same tuples. What it leaves out is what a schedule does not depend on:
    units, logs, commits, meters. Operators neither remember nor give out more than they take. Its arguments are those
    of :class:`~freshet.simulation.world.World`.

    >>> import numpy as np
    >>> from freshet.policies import FirstComeFirstServed
    >>> query = SimulatedQuery.straight("q", "s", [Profile(0.5)])
    >>> world = FastWorld({"s": np.array([0.0, 1.0])}, [query], FirstComeFirstServed())
    >>> world.run()
    >>> world.now, world.outcome().staleness
    (1.5, 0.666...)
    """

    def __init__(
        self,
        streams: Mapping[str, Floats],
        queries: Sequence[SimulatedQuery],
        policy: Policy,
        *,
        overhead: float = 0.0,
        call: float = 0.0,
        operation: float = 0.0,
        counted: Callable[[Policy], int] = operations,
        seed: int = 0,
        departs: Departs = "tuple",
        sizes: Mapping[str, int] | None = None,
        validity: Mapping[str, float] | None = None,
        created: Mapping[str, Floats] | None = None,
    ) -> None:
        profiles = profiles_of(queries)
        for name, profile in profiles.items():
            if profile.lasts is not None or profile.selectivity > 1.0:
                raise UserError(
                    f"operator {name} remembers, or gives out more than it takes: only the engine can do that"
                )
        self.policy, self.work, self.now = policy, Work(), 0.0
        self._overhead, self._call, self._departs = overhead, call, departs
        self._priced = overhead != 0.0 or call != 0.0
        self._operation, self._counted, self._paid = operation, counted, 0
        self._tuples = FastTuples(streams, seed, expiries_of(streams, validity or {}, created or {}))
        self._times = self._tuples.times
        self._promises = {query.name: query.promises for query in queries}
        self._board = _board(queries, profiles, overhead, call)
        self._edges: dict[str, FastEdge] = {}
        self._view = _View(self._operators(sizes or {}, profiles), self._board.queries, self._board)
        self._leaving: list[tuple[FastChain, list[str]]] = []
        self._shapes: dict[tuple[int, ...], _Shape] = {}
        self._chains: dict[tuple[Sequence[int], Sequence[int | None], Sequence[str], bool], FastChain] = {}
        self._steps: deque[Step] = deque()
        self._again: float | None = None
        names = sorted(streams)
        self._events = events_of([streams[name] for name in names])
        self._readers = [self._edges_of(name) for name in names]
        self._taken, self._next = 0, min(self._events[0][:1], default=math.inf)
        for number in range(len(queries)):
            policy.changed(self._view, number)

    # The network

    def _operators(self, sizes: Mapping[str, int], profiles: Mapping[str, Profile]) -> list[FastOperator]:
        found: list[FastOperator] = []
        behind: list[int] = []
        for state in self._board.operators:
            profile = profiles[state.node.name]
            operator = FastOperator(
                state.node.number, profile.cost, profile.selectivity, state.kind, state.ports, state.inputs,
                state.readers, state.outputs, state.queries, state.promises,
            )  # fmt: skip
            for each in state.node.queues:
                size = sizes.get(each.stream, TUPLE_BYTES) if each.source is None else behind[each.source]
                tokens = self._tuples.tokens[each.stream] if each.source is None else []
                edge = FastEdge(operator, size, tokens, self._tuples.expire)
                operator.edges.append(edge)
                if each.source is not None:
                    self._edges[each.stream] = edge
            behind.append(operator.edges[0].size if profile.size is None else profile.size)
            operator.size_in, operator.size_out = fmean(edge.size for edge in operator.edges), behind[-1]
            found.append(operator)
        return found

    def _edges_of(self, stream: str) -> tuple[tuple[FastEdge, ...], tuple[int, ...]]:
        """The edges that read a source, and their operators."""
        states = self._board.readers.get(stream, ())
        edges = tuple(self._view.operators[each.edge.node].edges[each.edge.port] for each in states)
        return edges, tuple(dict.fromkeys(edge.operator.number for edge in edges))

    # The loop

    def run(self) -> None:
        """Runs until all tuples are processed."""
        ready, steps, asks = self._view.ready, self._steps, MOST_ASKS
        while True:
            if not ready and not steps:
                if self._next == math.inf:
                    return
                self._wait(math.inf)
                asks = MOST_ASKS
                continue
            if not steps:
                self._decide()
                asks = asks - 1 if steps else 0
            shape = None
            while shape is None and steps:
                step = steps.popleft()
                shape = self._bind(step.nodes)
            if shape is not None:
                self._run(shape, step.rows)
                asks = MOST_ASKS
            elif ready and not asks:
                asks = MOST_ASKS
                self._wait(self._again if self._again is not None and self._again > self.now else self.now + LOOK_AGAIN)

    def _decide(self) -> None:
        view, steps = self._view, self._steps
        view.now = self.now
        decision = self.policy.decide(view)
        self.work.decisions += 1
        if self._operation:
            paid, self._paid = self._paid, self._counted(self.policy)
            due = (self._paid - paid) * self._operation
            self.work.scheduling += due
            self.now += due
            view.deciding = due
        for action in decision.actions:
            if isinstance(action, RunStep):
                steps.append(action.step)
            elif isinstance(action, Shed):
                raise UserError("FastWorld runs every tuple: use World for a policy that thins queries")
        self._again = decision.again
        if not steps and self._again is None and self._next == math.inf:
            raise UserError(f"policy {self.policy.name} declines to run what waits, and nothing more will come")

    def _wait(self, until: float) -> None:
        """Lets time pass until tuples come, but not beyond a moment."""
        self.now = max(self.now, min(until, self._next))
        self._admit(self.now)

    def _admit(self, now: float) -> None:
        """Takes in the tuples that have come by now, with a notice for each stream."""
        view, ready, times = self._view, self._view.ready, self._times
        view.now = now
        moments, streams, ends = self._events
        place = first = self._taken
        while place < len(moments) and moments[place] <= now:
            place += 1
        self._taken = place
        self._next = moments[place] if place < len(moments) else math.inf
        for stream, end in dict(zip(streams[first:place], ends[first:place])).items():  # noqa: B905 (faster)
            edges, operators = self._readers[stream]
            for edge in edges:
                operator = edge.operator
                if edge.end == edge.next:
                    edge.head = times[edge.tokens[edge.next]]
                edge.end = end
                edge.tail = times[edge.tokens[end - 1]]
                operator.refresh()
                if not operator.busy:
                    ready.setdefault(operator.number)
            if edges:
                self.policy.arrived(view, operators)

    # Steps

    def _bind(self, nodes: tuple[int, ...]) -> _Shape | None:
        """The part of a step that would run now; None if nothing would."""
        shape = self._shapes.get(nodes)
        if shape is not None and shape.fits():
            return shape
        operators, board = self._view.operators, self._board
        for number in nodes:
            for state, edge in zip(board.operators[number].edges, operators[number].edges, strict=True):
                state.waiting = edge.end - edge.next
        unit = bind(board, Step(nodes), "", 1, MadeUp(), lambda chains: ())
        if unit is None:
            return None
        feeding = {each for chain in unit.chains for each in chain.inputs if isinstance(each, int)}
        chains = tuple(self._chain(chain, place in feeding) for place, chain in enumerate(unit.chains))
        shape = _Shape(unit.nodes, chains, tuple(edge for chain in chains for edge in chain.fused))
        if len(unit.nodes) == len(nodes):
            self._shapes[nodes] = shape
        return shape

    def _chain(self, chain: Chain, feeds: bool) -> FastChain:
        """A chain that runs in this way, and that feeds others of its unit or does not."""
        inner = tuple([each if isinstance(each, int) else None for each in chain.inputs])
        key = chain.nodes, inner, chain.writes, feeds
        made = self._chains.get(key)
        if made is None:
            made = self._chains[key] = self._made(chain, inner, feeds)
        return made

    def _made(self, chain: Chain, inner: Sequence[int | None], feeds: bool) -> FastChain:
        through = [self._view.operators[number] for number in chain.nodes]
        queues = [self._edges[stream] for stream in chain.writes if stream in self._edges]
        outputs = [name for name in chain.writes if name in self._promises]
        nodes = [self._board.operators[each.number].node.name for each in through]
        passed = [self._tuples.passed_by(name, each.selectivity) for name, each in zip(nodes, through, strict=True)]
        asked = feeds or bool(queues)
        counted = not asked and inner == (None,) and isinstance(through[0].edges[0].tokens, range)
        kind = CountedChain if counted else ListedChain
        made = kind(through, inner, queues, passed, self._call, self._departs, bool(outputs))
        if outputs:
            self._leaving.append((made, outputs))
        return made

    def _run(self, shape: _Shape, limit: int | None) -> None:
        view, ready, work, times = self._view, self._view.ready, self.work, self._times
        moment = self.now + self._overhead
        given: list[Sequence[int]] = []
        calls = 0
        for chain in shape.chains:
            first = chain.first
            passed, moment, called, seconds = chain.run(given, limit, times, moment)
            first.busy = True
            ready.pop(first.number, None)
            given.append(passed)
            calls += called
            work.processing += seconds
        view.idle_workers = 0
        if self.now > view.now:
            # Deciding took time.
            self._admit(self.now)
        while self._next <= moment:
            # Tuples that come on the way are taken in when they come.
            self._admit(self._next)
        view.now = self.now = moment
        view.idle_workers = 1
        work.units += 1
        work.calls += calls
        for chain in shape.chains:
            first = chain.first
            first.busy = False
            if first.pending:
                ready.setdefault(first.number)
        if self._priced:
            overhead = self._overhead + self._call * calls
            work.overhead += overhead
            self._board.ran(shape.nodes, overhead)
        self.policy.completed(view, shape.nodes)
        for chain, tokens in zip(shape.chains, given):  # noqa: B905 (faster)
            if tokens:
                self._give(chain, tokens)

    def _give(self, chain: FastChain, tokens: Sequence[int]) -> None:
        """Takes what came out of a chain to where it goes."""
        view = self._view
        if chain.leaves:
            chain.end(tokens, self.now)
        for edge in chain.queues:
            edge.append(tokens, self._times)
            operator = edge.operator
            operator.refresh()
            view.ready.setdefault(operator.number)
            self.policy.arrived(view, (operator.number,))

    # What came of it

    def departed(self) -> Departed:
        """Arrivals and departures of the output tuples of each query, in the order in which they left."""
        return self._left(self._tuples.arrivals)

    def due(self) -> Departed:
        """Expiries and departures of the output tuples of each query, in the order in which they left."""
        return self._left(self._tuples.expiries)

    def _left(self, moments: Floats) -> Departed:
        parts: dict[str, list[tuple[Floats, Floats]]] = {name: [] for name in self._promises}
        for chain, outputs in self._leaving:
            left = chain.departed(moments)
            for name in outputs:
                parts[name].append(left)
        return joined(parts)

    def outcome(self, until: float | None = None) -> SimulationOutcome:
        """The quality of all outputs, from 0 until now or until a time."""
        return outcome(self.departed(), self._promises, self.now, self.work, until)


def _board(queries: Sequence[SimulatedQuery], profiles: Mapping[str, Profile], overhead: float, call: float) -> Board:
    """The engine's record of the network and of overheads, without what waits."""
    calls = OverheadStatistics.given(overhead + call)
    board = Board(lambda stream, first, end: 0, partial(way_of, call), calls=calls)
    for query in queries:
        board.add(query.query())
    for operator in board.operators:
        profile = profiles[operator.node.name]
        operator.statistics = OperatorStatistics.given(profile.cost, profile.selectivity)
    board.learn()
    return board
