"""The testbed of FAS §6: many three-operator queries over Poisson, bursty or real streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.arrivals import Bursts, Poisson
from freshet.simulation.executor import Profile
from freshet.simulation.outcome import Floats
from freshet.simulation.workloads.traces import TRACES, trace_arrivals
from freshet.simulation.world import SimulatedQuery

TIME_UNIT: Final = 1e-3
"""Seconds of one of the paper's time units. The paper leaves it open; staleness does not depend on it."""


@dataclass(frozen=True, slots=True)
class FasWorkload:
    """Queries and streams of FAS §6 (Table 1); the defaults are the paper's.

    *Queries* have two predicates and a projection (``operators`` - 1 predicates). All operators of a query cost the
    same, K 2^i time units with i drawn evenly from ``cost_classes``; ``equal_costs`` gives all queries class 0
    (Fig. 8). The predicates of a query share one selectivity, drawn from 0.1, 0.2, ... 1.0 with probability
    proportional to 1 / rank^zipf, rank 1 being 1.0. Query i reads stream i mod ``streams``.

    *Utilization* is the expected work that arrives per second: the sum over queries of C_avg (FAS §2) times the
    arrival rate of the query's stream. Synthetic streams all have the mean inter-arrival time
    (sum of C_avg over all queries) / utilization, with K = 1. The arrivals of traces are given, so there K is set such
    that the same sum comes out.

    *Streams* are Poisson. In the first ``bursty`` of them, each ``burst_size`` consecutive tuples arrive with
    the first of them.

    Args:
        trace_seconds: Use the first seconds of the two real traces as the streams instead, if not 0.
        light_weight: Weight of half of the queries; the others have 1 (FAS §4.4).
        of_query: Whether the drawn selectivity is that of all predicates of a query together.

    >>> bed = FasWorkload(queries=20, tuples=100, utilization=0.5)
    >>> streams = bed.streams_of()
    >>> len(streams), len(bed.queries_of(streams)), round(bed.load(streams), 2)
    (10, 20, 0.5)
    """

    queries: int = 250
    operators: int = 3
    streams: int = 10
    tuples: int = 10_000
    utilization: float = 0.95
    bursty: int = 5
    burst_size: int = 10
    zipf: float = 0.0
    cost_classes: int = 3
    equal_costs: bool = False
    trace_seconds: float = 0.0
    light_weight: float = 1.0
    of_query: bool = False
    seed: int = 0

    def streams_of(self) -> dict[str, Floats]:
        """Arrival times by stream."""
        if self.trace_seconds:
            return {name: trace_arrivals(name, self.trace_seconds) for name in TRACES}
        interval = self.round_seconds() / self.utilization
        return {f"s{number}": self._arrivals(number, 1.0 / interval) for number in range(self.streams)}

    def queries_of(self, streams: Mapping[str, Floats]) -> list[SimulatedQuery]:
        """The queries over these streams."""
        classes, selectivities = self._drawn()
        unit = self._unit(streams)
        names = list(streams)
        return [
            SimulatedQuery.straight(
                f"q{number}",
                names[number % len(names)],
                self._operators(unit * 2.0**level, selectivity),
                weight=1.0 if self.is_heavy(number) else self.light_weight,
            )
            for number, (level, selectivity) in enumerate(zip(classes.tolist(), selectivities.tolist(), strict=True))
        ]

    def is_heavy(self, number: int) -> bool:
        """Whether a query has weight 1; it alternates by rounds over the streams, so each stream has both kinds."""
        return number // self.streams % 2 == 0

    def load(self, streams: Mapping[str, Floats]) -> float:
        """Utilization by the mean rates that the streams were made for (synthetic) or have (traces)."""
        costs = self._unit(streams) * self._unit_costs(*self._drawn())
        return float(costs @ self._rates(streams))

    def round_seconds(self) -> float:
        """Expected seconds to process one tuple for every query (synthetic streams)."""
        return TIME_UNIT * float(self._unit_costs(*self._drawn()).sum())

    def cheapest(self, streams: Mapping[str, Floats]) -> float:
        """Cost of the cheapest operator: the paper's price of a calendar-queue operation."""
        return self._unit(streams)

    def _arrivals(self, number: int, rate: float) -> Floats:
        poisson = Poisson(rate, seed=1000 * self.seed + number)
        return (Bursts(poisson, self.burst_size) if number < self.bursty else poisson).first(self.tuples)

    def _drawn(self) -> tuple[NDArray[np.int64], Floats]:
        """Cost class and selectivity of each query."""
        generator = np.random.default_rng([self.seed, 0xFA5])
        classes = generator.integers(0, self.cost_classes, self.queries)
        ranks = np.arange(1, 11)
        chances = ranks ** -float(self.zipf)
        # Inverse transform: a change of skew moves the same draws.
        drawn = np.searchsorted(np.cumsum(chances) / chances.sum(), generator.random(self.queries))
        selectivities = (10 - np.minimum(drawn, 9)) / 10.0
        if self.of_query:
            selectivities = selectivities ** (1.0 / (self.operators - 1))
        return (np.zeros_like(classes) if self.equal_costs else classes), selectivities

    def _unit_costs(self, classes: NDArray[np.int64], selectivities: Floats) -> Floats:
        """C_avg of each query with K = 1, in time units: c (1 + s + s^2 + ...)."""
        powers: Floats = selectivities[:, None] ** np.arange(self.operators)
        costs: Floats = 2.0**classes * powers.sum(axis=1)
        return costs

    def _unit(self, streams: Mapping[str, Floats]) -> float:
        """Seconds of K."""
        if not self.trace_seconds:
            return TIME_UNIT
        return self.utilization / float(self._unit_costs(*self._drawn()) @ self._rates(streams))

    def _rates(self, streams: Mapping[str, Floats]) -> Floats:
        """Tuples per second of each query's stream."""
        if self.trace_seconds:
            rates = [len(times) / self.trace_seconds for times in streams.values()]
        else:
            rates = [self.utilization / self.round_seconds()] * len(streams)
        return np.array([rates[number % len(rates)] for number in range(self.queries)])

    def _operators(self, cost: float, selectivity: float) -> tuple[Profile, ...]:
        return (*(Profile(cost, selectivity) for _ in range(self.operators - 1)), Profile(cost))
