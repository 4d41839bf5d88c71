"""The engine's schedule without the engine's bookkeeping: the results of a world of one worker, many times faster."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from freshet.engine.admission import LOOK_AGAIN, MOST_ASKS
from freshet.engine.binding import MadeUp, bind
from freshet.model import Chain, Decision, RunStep, Shed, Step, UserError
from freshet.policies import Policy
from freshet.simulation.chains import ChainMark, CountedChain, FastChain, ListedChain
from freshet.simulation.executor import Departs, Profile
from freshet.simulation.fast_queues import FastEdge, FastOperator, FastTuples, events_of
from freshet.simulation.fast_view import FastShape, FastView, board_of
from freshet.simulation.log import TUPLE_BYTES, expiries_of
from freshet.simulation.outcome import Departed, Floats, SimulationOutcome, Work, outcome
from freshet.simulation.record import joined, operations
from freshet.simulation.world import SimulatedQuery, profiles_of


@dataclass(frozen=True, slots=True)
class _Run:
    """What a unit does.

    Args:
        given: The tuples that pass each of its chains.
        end: When it ends.
        calls: Calls of boxes.
        seconds: Seconds in boxes.
    """

    given: Sequence[Sequence[int]]
    end: float
    calls: int
    seconds: float


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
        self._board = board_of(queries, profiles, overhead, call)
        self._edges: dict[str, FastEdge] = {}
        self._view = FastView(self._operators(sizes or {}, profiles), self._board.queries, self._board)
        self._leaving: list[tuple[FastChain, list[str]]] = []
        self._shapes: dict[tuple[int, ...], FastShape] = {}
        self._chains: dict[tuple[Sequence[int], Sequence[int | None], Sequence[str], bool, bool], FastChain] = {}
        self._steps: deque[Step] = deque()
        self._behind = 0
        """Tuples that were left behind and still wait for a step."""
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
                tokens: range | list[int] = self._tuples.tokens[each.stream] if each.source is None else []
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

    def run(self, until: float = math.inf) -> None:
        """Runs until all tuples are processed, or until the first unit that ends at a time or later."""
        ready, steps, asks = self._view.ready, self._steps, MOST_ASKS
        while self.now < until:
            if not ready and not steps and not self._behind:
                if self._next == math.inf:
                    return
                self._wait(math.inf)
                asks = MOST_ASKS
                continue
            if not steps:
                asks = asks - 1 if self._decide() else 0
            shape = None
            while shape is None and steps:
                step = steps.popleft()
                shape = self._bind(step)
            if shape is not None:
                self._run(shape, step.rows)
                asks = MOST_ASKS
            elif (ready or self._behind) and not asks:
                asks = MOST_ASKS
                self._wait(self._again if self._again is not None and self._again > self.now else self.now + LOOK_AGAIN)

    def _decide(self) -> bool:
        """Asks the policy; returns whether it wants something done."""
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
        self._leave_behind(decision)
        self._again = decision.again
        if not decision.actions and self._again is None and self._next == math.inf:
            raise UserError(f"policy {self.policy.name} declines to run what waits, and nothing more will come")
        return bool(decision.actions)

    def _leave_behind(self, decision: Decision) -> None:
        """Passes over tuples that cannot be in time any more."""
        for action in decision.left_behind:
            operator = self._view.operators[action.node]
            self._behind += sum([edge.leave(action.before, self._times) for edge in operator.edges])
            operator.refresh()
            if not operator.pending:
                self._view.ready.pop(operator.number, None)

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

    def _bind(self, step: Step) -> FastShape | None:
        """The part of a step that would run now; None if nothing would."""
        nodes, holes = step.nodes, step.holes
        shape = None if holes else self._shapes.get(nodes)
        if shape is not None and shape.fits():
            return shape
        operators, board = self._view.operators, self._board
        for number in nodes:
            for state, edge in zip(board.operators[number].edges, operators[number].edges, strict=True):
                state.waiting = len(edge.holes) if holes and number == nodes[0] else edge.end - edge.next
        unit = bind(board, Step(nodes), "", 1, MadeUp(), lambda chains: ())
        if unit is None:
            return None
        feeding = {each for chain in unit.chains for each in chain.inputs if isinstance(each, int)}
        chains = tuple(
            self._chain(chain, place in feeding, holes and chain.nodes[0] == nodes[0])
            for place, chain in enumerate(unit.chains)
        )
        shape = FastShape(unit.nodes, chains, tuple(edge for chain in chains for edge in chain.fused))
        if len(unit.nodes) == len(nodes) and not holes:
            self._shapes[nodes] = shape
        return shape

    def _chain(self, chain: Chain, feeds: bool, holes: bool) -> FastChain:
        """A chain that runs in this way, and that feeds others of its unit or does not."""
        inner = tuple([each if isinstance(each, int) else None for each in chain.inputs])
        key = chain.nodes, inner, chain.writes, feeds, holes
        made = self._chains.get(key)
        if made is None:
            made = self._chains[key] = self._made(chain, inner, feeds, holes)
        return made

    def _made(self, chain: Chain, inner: Sequence[int | None], feeds: bool, holes: bool) -> FastChain:
        through = [self._view.operators[number] for number in chain.nodes]
        queues = [self._edges[stream] for stream in chain.writes if stream in self._edges]
        outputs = [name for name in chain.writes if name in self._promises]
        nodes = [self._board.operators[each.number].node.name for each in through]
        passed = [self._tuples.passed_by(name, each.selectivity) for name, each in zip(nodes, through, strict=True)]
        asked = feeds or bool(queues) or holes
        counted = not asked and inner == (None,) and isinstance(through[0].edges[0].tokens, range)
        kind = CountedChain if counted else ListedChain
        made = kind(through, inner, queues, passed, self._call, self._departs, bool(outputs), holes)
        if outputs:
            self._leaving.append((made, outputs))
        return made

    def _run(self, shape: FastShape, limit: int | None) -> None:
        view, ready, work = self._view, self._view.ready, self.work
        marks = [chain.mark() for chain in shape.chains] if self.policy.preempts else []
        run = self._attempt(shape, limit)
        for chain in shape.chains:
            chain.first.busy = True
            ready.pop(chain.first.number, None)
        view.idle_workers = 0
        if self.now > view.now:
            # Deciding took time.
            self._admit(self.now)
        if marks:
            run = self._watch(shape, run, marks)
        while self._next <= run.end:
            # Tuples that come on the way are taken in when they come.
            self._admit(self._next)
        view.now = self.now = run.end
        view.idle_workers = 1
        if self._behind:
            self._behind = sum([operator.left_behind for operator in view.operators])
        work.units += 1
        work.calls += run.calls
        work.processing += run.seconds
        for chain in shape.chains:
            first = chain.first
            first.busy = False
            if first.pending:
                ready.setdefault(first.number)
        if self._priced:
            overhead = self._overhead + self._call * run.calls
            work.overhead += overhead
            self._board.ran(shape.nodes, overhead)
        self.policy.completed(view, shape.nodes)
        for chain, tokens in zip(shape.chains, run.given):  # noqa: B905 (faster)
            if tokens:
                self._give(chain, tokens)

    def _attempt(self, shape: FastShape, limit: int | None) -> _Run:
        """Runs chains over at most some tuples of each queue, from now on."""
        moment, calls, seconds = self.now + self._overhead, 0, 0.0
        given: list[Sequence[int]] = []
        for chain in shape.chains:
            passed, moment, called, spent = chain.run(given, limit, self._times, moment)
            given.append(passed)
            calls += called
            seconds += spent
        return _Run(given, moment, calls, seconds)

    def _watch(self, shape: FastShape, run: _Run, marks: Sequence[ChainMark]) -> _Run:
        """Asks the policy whenever something happens while a unit runs; returns what the unit does until it ends."""
        view = self._view
        while True:
            alarm = math.inf if self._again is None or self._again <= view.now else self._again
            moment = min(self._next, alarm)
            if moment > run.end:
                return run
            self._admit(moment)
            self._again = None
            decision = self.policy.running(view)
            self._leave_behind(decision)
            self._again = decision.again
            if decision.preempts:
                return self._cut_short(shape, run, marks)

    def _cut_short(self, shape: FastShape, run: _Run, marks: Sequence[ChainMark]) -> _Run:
        """What a unit has done when the tuple that it is at now has passed; the others wait again.

        Only units over one train are cut short: of several trains, nobody could say how far each is.
        """
        taken = [len(before) - len(edge.holes) if chain.holes else edge.next - first
                 for chain, (_, places) in zip(shape.chains, marks, strict=True)
                 for edge, (first, before) in zip(chain.queued(), places, strict=True)]  # fmt: skip
        if sum(map(bool, taken)) != 1:
            return run
        low, high = 1, max(taken)
        while low < high:
            middle = (low + high) // 2
            self._take_back(shape, marks)
            if self._attempt(shape, middle).end >= self._view.now:
                high = middle
            else:
                low = middle + 1
        self._take_back(shape, marks)
        return self._attempt(shape, low)

    def _take_back(self, shape: FastShape, marks: Sequence[ChainMark]) -> None:
        for chain, mark in zip(shape.chains, marks, strict=True):
            chain.take_back(mark, self._times)

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
