"""A simulated application in one object: streams, queries of known costs, the engine in virtual time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from freshet.engine import Engine, Optimizer, VirtualClock
from freshet.engine.history_keeper import HistoryKeeper
from freshet.model import (
    Curve,
    Filter,
    InputWindow,
    Instance,
    Join,
    Lifetime,
    Moving,
    Operator,
    Panes,
    Promises,
    Query,
    QueryGraph,
    Union,
    UserError,
)
from freshet.model.network import edge_name
from freshet.policies import Policy
from freshet.policies.periodic.earliest_deadline import EarliestDeadline
from freshet.policies.periodic.first import PeriodicFirst
from freshet.policies.periodic.scheduler import PeriodicScheduler
from freshet.quality import OperatorStatistics, OverheadStatistics
from freshet.quality.history import History, HistoryRecord
from freshet.quality.periodic.managed import ManagedLevels
from freshet.simulation.executor import Departs, Profile, SimulatedExecutor
from freshet.simulation.log import SimulatedLog, expiries_of, microseconds
from freshet.simulation.outcome import Departed, Floats, SimulationOutcome, Work, outcome
from freshet.simulation.record import Charged, Record, operations
from freshet.simulation.sampler import PaidLevels, SimulatedSampler


@dataclass(frozen=True)
class SimulatedQuery:
    """A query as a graph of operators of known cost and selectivity.

    Operators have a name. An operator that is in several queries under the same name is shared by them. Its kind
    follows from its place and its profile. An operator that remembers is a join, or a window if it has one input. An
    operator with several inputs that does not remember is a union; the others are filters.

    Args:
        name: Name of the query.
        operators: The profiles of its operators, by name.
        inputs: The operators or streams that each of them reads. The operator that no other reads is the last.
        promises: What was promised to it.
        windows: Of a periodic query: seconds of each stream that an instance sees before its release.

    >>> query = SimulatedQuery(
    ...     "pairs",
    ...     {"left": Profile(1e-3, 0.5), "join": Profile(2e-3, lasts=10.0), "sum": Profile(1e-3, slide=5.0)},
    ...     {"left": ("s",), "join": ("left", "t"), "sum": ("join",)},
    ... )
    >>> query.root, {name: operator.tag for name, operator in query.query().graph.operators.items()}
    ('sum', {'left': 'filter', 'join': 'join', 'sum': 'panes'})
    """

    name: str
    operators: Mapping[str, Profile]
    inputs: Mapping[str, tuple[str, ...]]
    promises: Promises = field(default_factory=Promises)
    windows: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def straight(
        cls,
        name: str,
        stream: str,
        profiles: Sequence[Profile],
        weight: float = 1.0,
        curve: Curve | None = None,
        shared: int = 0,
    ) -> SimulatedQuery:
        """One path over a stream. Queries over the same stream have their first ``shared`` operators in common.

        >>> SimulatedQuery.straight("q", "s", [Profile(0.1), Profile(0.2)]).inputs
        {'q.filter_1': ('s',), 'q.project': ('q.filter_1',)}
        """
        owners = [f"shared_{stream}" if place < shared else name for place in range(len(profiles) - 1)]
        names = [*(f"{owner}.filter_{place}" for place, owner in enumerate(owners, 1)), f"{name}.project"]
        inputs = {each: (source,) for each, source in zip(names, [stream, *names[:-1]], strict=True)}
        return cls(name, dict(zip(names, profiles, strict=True)), inputs, Promises(weight, curve))

    @classmethod
    def tree(
        cls, name: str, profiles: Sequence[Profile], after: Sequence[int | None], promises: Promises | None = None
    ) -> SimulatedQuery:
        """Boxes whose outputs go to one box each: ``after`` has its place, or None for the query's output. Boxes that
        get nothing from others read a stream of their own, which is named like them.

        >>> SimulatedQuery.tree("q", [Profile(0.1)] * 3, (2, 2, None)).inputs
        {'q.0': ('q.0.in',), 'q.1': ('q.1.in',), 'q.2': ('q.0', 'q.1')}
        """
        before: list[list[str]] = [[] for _ in profiles]
        for place, reader in enumerate(after):
            if reader is not None:
                before[reader].append(f"{name}.{place}")
        inputs = {f"{name}.{place}": tuple(each) or (f"{name}.{place}.in",) for place, each in enumerate(before)}
        return cls(name, dict(zip(inputs, profiles, strict=True)), inputs, promises or Promises())

    @cached_property
    def root(self) -> str:
        """The operator that gives the query's output."""
        read = {source for each in self.inputs.values() for source in each}
        ends = [name for name in self.operators if name not in read]
        if len(ends) != 1 or self.operators.keys() != self.inputs.keys():
            raise UserError(f"query {self.name}: {len(ends)} of its operators are read by no other: let it be one")
        return ends[0]

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""
        return self.query().graph.streams

    def query(self) -> Query:
        """The query in the engine's form."""
        operators = {name: self._operator(name) for name in self.operators}
        graph = QueryGraph(operators, self.inputs, self.root)
        return Query(self.name, "", graph, self.promises, windows=dict(self._windows()))

    def _windows(self) -> Iterator[tuple[str, InputWindow]]:
        """What an instance sees at each edge, by the name of the edge's cursor."""
        for name, sources in self.inputs.items():
            for port, source in enumerate(sources):
                if source in self.windows:
                    yield edge_name(name, port, len(sources)), InputWindow(microseconds(self.windows[source]))

    def _operator(self, name: str) -> Operator:
        profile, ports = self.operators[name], len(self.inputs[name])
        if profile.pairs:
            return Join(name, "inner", (Lifetime(None, 1),) * ports, ((),) * ports, (), (0,) * ports)
        if profile.lasts is None:
            return Union(name) if ports > 1 else Filter(name, "true")
        lasts = microseconds(profile.lasts)
        if profile.slide is not None:
            return Panes(name, Lifetime(None, lasts), microseconds(profile.slide))
        if ports > 1:
            return Join(name, "inner", (Lifetime(None, lasts),) * ports, ((),) * ports, (), (0,) * ports)
        return Moving(name, None, lasts)


class World:
    """An engine over simulated streams and queries.

    Args:
        streams: Arrival times by stream, nondecreasing.
        overhead: Seconds per unit.
        call: Seconds per call of a box, of which a unit has one for each operator that gets tuples.
        operation: Seconds per operation of the scheduler. They pass before what it decided begins.
        counted: Says how many operations the policy has counted.
        slots: Workers.
        seed: Of the draws.
        most_rows: Maximum number of tuples in a train.
        known: Whether the policy sees the true costs, selectivities and overhead (of a unit that calls one box);
            otherwise it learns them.
        departs: When tuples leave a unit.
        sizes: Bytes of a tuple, by stream.
        validity: Seconds for which tuples are worth answering, by stream; of others for ever (WU §4.3).
        created: Event times of tuples, by stream, from which their validity counts; by default their arrivals.
        optimizer: Gives queries strategies.
        history: Takes samples of the run; :meth:`course` gives them.
        periodic: Says which instances of periodic queries run first; by default those with the earliest deadline.
        reserve: Share of the time that continuous queries keep.
        levels: Makes what says how much of their windows instances keep, with the sampler of this world; None: they
            keep everything.

    >>> import numpy as np
    >>> from freshet.policies import FirstComeFirstServed
    >>> query = SimulatedQuery.straight("q", "s", [Profile(0.5)])
    >>> world = World({"s": np.array([0.0, 1.0])}, [query], FirstComeFirstServed())
    >>> world.run()
    >>> world.now, world.outcome().staleness, world.engine.meters.snapshot(2.0)["queries"]["q"]["freshness"]
    (1.5, 0.666..., 0.5)
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
        slots: int = 1,
        seed: int = 0,
        most_rows: int = 1_000_000,
        known: bool = True,
        departs: Departs = "tuple",
        sizes: Mapping[str, int] | None = None,
        optimizer: Optimizer | None = None,
        history: History | None = None,
        periodic: PeriodicScheduler | None = None,
        reserve: float = 0.0,
        levels: Callable[[SimulatedSampler], ManagedLevels] | None = None,
        validity: Mapping[str, float] | None = None,
        created: Mapping[str, Floats] | None = None,
    ) -> None:
        clock = VirtualClock()
        self._known = known
        self._profiles = profiles_of(queries)
        quiet = bool(queries) and all(query.windows for query in queries)
        expiries = expiries_of(streams, validity or {}, created or {})
        self.log = SimulatedLog(clock, streams, sizes, _beats(streams, queries), quiet, expiries)
        executor = SimulatedExecutor(
            self.log, clock, self._profiles, overhead=overhead, call=call, slots=slots, seed=seed, departs=departs,
            validity=validity,
        )  # fmt: skip
        self._policy = policy.name
        if operation:
            policy = Charged(policy, clock, operation, counted)
        self._record = Record()
        manager = None if levels is None else PaidLevels(levels(SimulatedSampler(executor, seed)), clock)
        first = PeriodicFirst(periodic or EarliestDeadline(), policy, reserve, manager)
        self.engine = Engine(
            self.log, executor, clock, policy, most_rows=most_rows, stopwatch=clock.now, observers=[self._record],
            optimizer=optimizer, periodic=first,
        )  # fmt: skip
        self._history = history
        if history is not None:
            self._keeper = HistoryKeeper(history, self.engine, clock.now)
            self.engine.observers.append(self._keeper)
        if known:
            self.engine.board.calls = OverheadStatistics.given(overhead + call)
        for query in queries:
            self.add(query)

    def add(self, query: SimulatedQuery) -> None:
        """Adds a query, also while others run."""
        self._profiles.update(profiles_of([query]))
        self.engine.add_query(query.query(), {})
        board = self.engine.board
        if self._known:
            for operator in board.own([board.queries[board.numbers[query.name]]]):
                profile = self._profiles[operator.node.operator.name]
                operator.statistics = OperatorStatistics.given(profile.cost, profile.selectivity)
            board.learn()

    @property
    def now(self) -> float:
        """Simulated seconds."""
        return self.engine.clock.now()

    @property
    def work(self) -> Work:
        """What the run did so far."""
        return self._record.work

    @property
    def instances(self) -> Sequence[Instance]:
        """What became of the instances of periodic queries."""
        return self.log.instances

    def run(self, until: float = math.inf) -> None:
        """Runs until all tuples are processed, or until a time."""
        self.engine.run(until)

    def course(self, name: str = "simulation") -> HistoryRecord:
        """How the run went over time, for :func:`freshet.pages.run_page`. The world must have been given a history."""
        if self._history is None:
            raise UserError("a world keeps a history if it is given one: World(..., history=History())")
        self._keeper.take(self.now)
        return self._keeper.record(name, self._policy, self.engine.executor.slots, real=False)()

    def departed(self) -> Departed:
        """Arrivals and departures of the output tuples of each query, in the order in which they left."""
        return self._record.departed()

    def due(self) -> Departed:
        """Expiries and departures of the output tuples of each query, in the order in which they left."""
        return self._record.due()

    def outcome(self, until: float | None = None) -> SimulationOutcome:
        """The quality of all outputs, from 0 until now or until a time."""
        return outcome(self.departed(), self._record.promises, self.now, self.work, until)


def profiles_of(queries: Iterable[SimulatedQuery]) -> dict[str, Profile]:
    """The profiles of all operators, by name."""
    found: dict[str, Profile] = {}
    for query in queries:
        for name, profile in query.operators.items():
            if found.setdefault(name, profile) != profile:
                raise UserError(f"query {query.name}: operator {name} has another profile in another query")
    return found


def _beats(streams: Mapping[str, Floats], queries: Iterable[SimulatedQuery]) -> list[float]:
    """Moments at which streams must report event time, so that all windows close; empty if there are no windows."""
    windows = [
        [(each.slide, each.lasts) for each in query.operators.values() if each.slide is not None and each.lasts]
        for query in queries
    ]
    slides = {slide for each in windows for slide, _ in each}
    if not slides:
        return []
    last = max((float(times[-1]) for times in streams.values() if len(times)), default=0.0)
    end = last + max(sum(slide + lasts for slide, lasts in each) for each in windows)
    return sorted({number * slide for slide in slides for number in range(1, math.ceil(end / slide) + 1)})
