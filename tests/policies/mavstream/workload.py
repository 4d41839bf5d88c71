"""A query of eight operators with two joins over three bursty streams (MAV §5), and what a strategy makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freshet.engine import Engine
from freshet.engine.events import Event
from freshet.policies import Policy
from freshet.simulation.executor import Profile
from freshet.simulation.outcome import Floats
from freshet.simulation.world import SimulatedQuery, World

INPUTS = {
    "first": ("s0",), "second": ("s1",), "pairs": ("first", "second"), "fitting": ("pairs",),
    "third": ("s2",), "triples": ("fitting", "third"), "large": ("triples",), "shown": ("large",),
}  # fmt: skip
PROFILES = {
    "first": Profile(1e-3, 0.5),
    "second": Profile(1.5e-3, 0.6),
    "pairs": Profile(3e-3, 0.9, lasts=1.0),
    "fitting": Profile(2.5e-3, 0.5, size=40),
    "third": Profile(1e-3, 0.4),
    "triples": Profile(2.5e-3, 0.9, lasts=1.0),
    "large": Profile(1.5e-3, 0.8),
    "shown": Profile(1e-3, 1.0, size=20),
}
QUERY = SimulatedQuery("q", PROFILES, INPUTS)


def bursts(rate: float, seconds: float, seed: int) -> Floats:
    """Poisson arrivals, four times as many in every fourth second."""
    generator = np.random.default_rng(seed)
    begins = np.arange(seconds)
    rates = np.where(begins % 4 == 1, 4.0, 1.0) * rate
    counts = generator.poisson(rates)
    return np.sort(
        np.concatenate([begin + generator.random(count) for begin, count in zip(begins, counts, strict=True)])
    )


def streams(rate: float, seconds: float) -> dict[str, Floats]:
    return {name: bursts(rate * share, seconds, seed) for seed, (name, share) in enumerate(SHARES.items())}


SHARES = {"s0": 1.0, "s1": 0.9, "s2": 1.1}


class Memory:
    """Watches the bytes in all queues, also of tuples that are being processed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._since, self._bytes = 0.0, 0
        self.byte_seconds = 0.0

    def tell(self, event: Event) -> None:
        log, now = self._engine.log, self._engine.clock.now()
        self.byte_seconds += self._bytes * (now - self._since)
        edges = (edge for operator in self._engine.board.operators for edge in operator.edges)
        self._bytes = sum(log.bytes(edge.edge.stream, edge.cursor, edge.end) for edge in edges)
        self._since = now


@dataclass(frozen=True)
class Run:
    """What came of a run: mean latency of the answers, mean bytes in queues, and the answers' arrivals."""

    latency: float
    memory: float
    answers: dict[str, list[float]]


def run(policy: Policy, arrivals: dict[str, Floats], *queries: SimulatedQuery, overhead: float = 0.0) -> Run:
    world = World(arrivals, queries or [QUERY], policy, overhead=overhead)
    memory = Memory(world.engine)
    world.engine.observers.append(memory)
    world.run()
    departed = world.departed()
    answers = {name: sorted(times[0].tolist()) for name, times in departed.items()}
    return Run(world.outcome().response, memory.byte_seconds / world.now, answers)
