"""The testbed of WU §4.9.1: random query trees over four streams whose tuples expire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle
from typing import Final, Literal

import numpy as np

from freshet.arrivals import BModel, Poisson
from freshet.model import Promises
from freshet.simulation.draws import first_passes
from freshet.simulation.executor import Profile
from freshet.simulation.log import expiries_of
from freshet.simulation.outcome import Floats
from freshet.simulation.workloads.traces import trace_arrivals
from freshet.simulation.world import SimulatedQuery

TupleProcess = Literal["trace", "b-model", "poisson"]
"""How tuples arrive."""
STREAMS: Final = ("s1", "s2", "s3", "s4")
KINDS: Final[Mapping[str, tuple[float, float]]] = {
    "select": (0.3, 0.9),
    "project": (1.0, 1.0),
    "join": (0.5, 1.0),
    "aggregate": (0.5, 1.0),
}
"""Range of tuples out per tuple in, by kind of operator. The thesis names the kinds and no figures."""


@dataclass(frozen=True, slots=True)
class TupleWorkload:
    """Queries that share operators, made as the thesis makes them: from the answers up to the streams.

    Each query has an operator of its own, which gives its answers. Some operators are parents of these. The number of
    children of each is drawn from a normal distribution around the mean fan-out. The same is done with what has no
    parent yet, until all operators are there. What has no parent then reads a stream.

    Args:
        queries: Their number.
        operators: The number of operators.
        cost: Mean seconds per tuple; each operator's is drawn evenly between half and one and a half of it.
        weights: The least and the greatest weight, in tenths; each query's is drawn among the whole numbers between,
            or one of the two if ``extremes``.
        extremes: Whether only the least and the greatest weight are drawn.
        validity: Least and greatest seconds for which the tuples of a stream are worth answering.
        load: Work that comes per second, without overhead.
        seconds: For how long tuples come.
        process: How they arrive: as in a trace, by the b-model or by a Poisson process.
        bias: Of the b-model.
        span: Seconds of a cascade of the b-model; None: all of the time, as the thesis describes it.
        delay: Seconds between the event time and the arrival of each tuple (Fig. 4.12).
        seed: Of all draws.

    >>> bed = TupleWorkload(queries=6, operators=10, seconds=5.0, process="poisson")
    >>> queries = bed.queries_of()
    >>> len(queries), len({name for query in queries for name in query.operators})
    (6, 10)
    >>> due = bed.due()
    >>> sorted(due) == sorted(query.name for query in queries), min(due.values()) >= 0
    (True, True)
    """

    queries: int = 24
    operators: int = 40
    cost: float = 4e-3
    weights: tuple[int, int] = (1, 10)
    extremes: bool = False
    validity: tuple[float, float] = (4.0, 8.0)
    load: float = 1.5
    seconds: float = 60.0
    process: TupleProcess = "trace"
    bias: float = 0.7
    span: float | None = None
    delay: float = 0.0
    seed: int = 0

    def queries_of(self) -> list[SimulatedQuery]:
        """The queries, with the operators that lead to each."""
        profiles, parents = self._tree()
        generator = np.random.default_rng([self.seed, 0x77])
        low, high = self.weights
        found = []
        for leaf in range(self.queries):
            path = [leaf]
            while isinstance(above := parents[path[-1]], int):
                path.append(above)
            reads = {f"o{place}": (each if isinstance(each := parents[place], str) else f"o{each}",) for place in path}
            tenths = generator.choice([low, high]) if self.extremes else generator.integers(low, high + 1)
            operators = {name: profiles[int(name[1:])] for name in reads}
            found.append(SimulatedQuery(f"q{leaf}", operators, reads, Promises(weight=float(tenths) / 10.0)))
        return found

    def streams_of(self) -> dict[str, Floats]:
        """Arrival times by stream."""
        rate = self.rate
        count = max(1, round(rate * self.seconds))
        return {name: self._times(place, rate, count) for place, name in enumerate(STREAMS)}

    def created_of(self) -> dict[str, Floats]:
        """Event times by stream."""
        return {name: times - self.delay for name, times in self.streams_of().items()} if self.delay else {}

    def validity_of(self) -> dict[str, float]:
        """Seconds for which tuples are worth answering, by stream."""
        generator = np.random.default_rng([self.seed, 0x7A])
        return {name: float(generator.uniform(*self.validity)) for name in STREAMS}

    @property
    def rate(self) -> float:
        """Tuples per second of each stream."""
        profiles, parents = self._tree()
        reach: dict[int, float] = {}
        # An operator has a lower place than its parent.
        for place in reversed(range(self.operators)):
            above = parents[place]
            reach[place] = reach[above] * profiles[above].selectivity if isinstance(above, int) else 1.0
        return self.load / sum(reach[place] * profiles[place].cost for place in reach)

    def due(self) -> dict[str, int]:
        """Number of answers of each query that are due before tuples stop coming. Later ones would have the time of
        those that do not come any more."""
        streams = self.streams_of()
        expiries, longest = expiries_of(streams, self.validity_of(), self.created_of()), max(map(len, streams.values()))
        found = {}
        for query in self.queries_of():
            (stream,) = query.streams
            alive = expiries[stream] <= self.seconds
            for name, profile in query.operators.items():
                if profile.selectivity != 1.0:
                    alive = alive & first_passes(self.seed, name, profile.selectivity, longest)[: len(alive)]
            found[query.name] = int(np.count_nonzero(alive))
        return found

    def _tree(self) -> tuple[tuple[Profile, ...], tuple[int | str, ...]]:
        return _tree_of(self.queries, self.operators, self.cost, self.seed)

    def _times(self, place: int, rate: float, count: int) -> Floats:
        if self.process == "trace":
            every = trace_arrivals("packets", float("inf"))
            quarter = len(every) // len(STREAMS)
            part = every[quarter * place :][: min(count, quarter)]
            part = part - part[0]
            scaled: Floats = part * (self.seconds * len(part) / count / part[-1])
            return scaled
        seed = 1009 * self.seed + place
        if self.process == "b-model":
            # In intervals of about a tenth of a second, as a trace has them.
            span = self.span or self.seconds
            levels = max(1, round(float(np.log2(span / 0.1))))
            return BModel(rate, self.bias, span, levels, seed).first(count)
        return Poisson(rate, seed).first(count)


@lru_cache
def _tree_of(queries: int, operators: int, cost: float, seed: int) -> tuple[tuple[Profile, ...], tuple[int | str, ...]]:
    """The operators, and for each the place of the one that it reads, or a stream."""
    generator = np.random.default_rng([seed, 0x74])
    parents: dict[int, int | str] = {}
    inner = operators - queries
    fan_out = max(1.0, (operators - len(STREAMS)) / max(1, inner))
    layer, following = list(range(queries)), queries
    while following < operators:
        generator.shuffle(layer)
        above: list[int] = []
        for _ in range(min(operators - following, max(1, round(len(layer) / fan_out)))):
            if not layer:
                break
            taken = max(1, round(generator.normal(fan_out, fan_out / 3.0)))
            for child in layer[:taken]:
                parents[child] = following
            del layer[:taken]
            above.append(following)
            following += 1
        layer += above
    streams = cycle(STREAMS)
    parents.update({top: next(streams) for top in sorted(layer)})
    return tuple(_profile(cost, generator) for _ in range(operators)), tuple(parents[each] for each in range(operators))


def _profile(cost: float, generator: np.random.Generator) -> Profile:
    low, high = KINDS[str(generator.choice(list(KINDS)))]
    return Profile(float(generator.uniform(0.5, 1.5)) * cost, float(generator.uniform(low, high)))
