"""A simulated application in one object: streams, queries with costs and selectivities, an engine in virtual time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from freshet.engine import Engine, VirtualClock
from freshet.model import Curve, Filter, Project, Promises, Query, QueryGraph
from freshet.policies import Policy
from freshet.quality import OperatorStatistics
from freshet.simulation.charge import Charge
from freshet.simulation.executor import Profile, SimulatedExecutor
from freshet.simulation.log import SimulatedLog


@dataclass(frozen=True, slots=True)
class SimulatedQuery:
    """A query as a chain of operators of known cost and selectivity; the last one is its projection.

    The first ``shared`` operators are those of all queries over the stream that share as many.
    """

    name: str
    stream: str
    operators: tuple[Profile, ...]
    weight: float = 1.0
    curve: Curve | None = None
    shared: int = 0

    def query(self) -> Query:
        """The query as the engine knows it."""
        names = [self._filter_name(index) for index in range(len(self.operators) - 1)]
        filters = [Filter(name, "true") for name in names]
        graph = QueryGraph.straight(self.stream, [*filters, Project(f"{self.name}.project", ())])
        return Query(self.name, "", graph, Promises(self.weight, self.curve))

    def _filter_name(self, index: int) -> str:
        owner = f"shared_{self.stream}" if index < self.shared else self.name
        return f"{owner}.filter_{index + 1}"

    def profiles(self) -> dict[str, Profile]:
        """Profiles by operator name."""
        return dict(zip(self.query().graph.operators, self.operators, strict=True))


class World:
    """An engine over simulated streams and queries.

    Args:
        streams: Arrival times by stream.
        queries: The queries.
        policy: The scheduler.
        overhead: Seconds per unit.
        slots: Workers.
        seed: Of the draws.
        most_rows: Most tuples of a train.
        charge: What the scheduler's own operations cost.
        known: Whether the policy sees the true costs and selectivities; otherwise it learns them.
        together: Whether all tuples of a unit depart at its end.

    >>> from freshet.policies import FirstComeFirstServed
    >>> world = World({"s": np.array([0.0, 1.0])}, [SimulatedQuery("q", "s", (Profile(0.5),))], FirstComeFirstServed())
    >>> world.run()
    >>> world.engine.clock.now(), world.engine.meters.snapshot(2.0)["queries"]["q"]["freshness"]
    (1.5, 0.5)
    """

    def __init__(
        self,
        streams: Mapping[str, np.ndarray],
        queries: Sequence[SimulatedQuery],
        policy: Policy,
        *,
        overhead: float = 0.0,
        slots: int = 1,
        seed: int = 0,
        most_rows: int = 1_000_000,
        charge: Charge | None = None,
        known: bool = True,
        together: bool = False,
    ) -> None:
        clock = VirtualClock()
        self.log = SimulatedLog(clock, streams)
        profiles = {name: profile for query in queries for name, profile in query.profiles().items()}
        executor = SimulatedExecutor(
            self.log, clock, profiles, overhead=overhead, slots=slots, seed=seed, charge=charge, together=together
        )
        self.engine = Engine(self.log, executor, clock, policy, most_rows=most_rows, stopwatch=clock.now)
        for query in queries:
            self.engine.add_query(query.query(), {})
        if known:
            for operator in self.engine.board.operators:
                profile = profiles[operator.node.operator.name]
                operator.statistics = OperatorStatistics.given(profile.cost, profile.selectivity)
            self.engine.board.learn()

    def run(self, until: float = math.inf) -> None:
        """Runs until all tuples are processed, or until a time."""
        self.engine.run(until)
