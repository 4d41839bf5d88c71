"""The testbed of MAV §5: one query of eight operators, two of them joins, over three Poisson streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from freshet.arrivals import RateSchedule
from freshet.model import Promises
from freshet.simulation.executor import Profile
from freshet.simulation.outcome import Floats
from freshet.simulation.world import SimulatedQuery

QUERY: Final = "q"
STREAMS: Final = ("s0", "s1", "s2")
RATES: Final = (2000.0, 1800.0, 2200.0)
"""Tuples per second by stream (MAV §5, Fig. 5-6 and 9-10)."""
FEW: Final = (800.0, 950.0, 500.0)
"""The same for Fig. 7-8."""
TUPLE_BYTES: Final = 100
"""Bytes of a tuple of a stream. The paper has none; then its 10 MB are about 17 s of all arrivals."""
BURST: Final = 2.0
"""In a burst, tuples come this many times as fast (MAV §5, Fig. 7)."""

INPUTS: Final = {
    "first": ("s0",), "second": ("s1",), "pairs": ("first", "second"), "fitting": ("pairs",),
    "third": ("s2",), "triples": ("fitting", "third"), "large": ("triples",), "shown": ("large",),
}  # fmt: skip
_RELATIVE: Final = {
    "first": Profile(1.0, 0.5, size=50),
    "second": Profile(1.5, 0.6, size=50),
    "pairs": Profile(3.0, 0.9, lasts=1.0),
    "fitting": Profile(2.5, 0.5, size=30),
    "third": Profile(1.0, 0.4, size=50),
    "triples": Profile(4.0, 0.9, lasts=1.0),
    "large": Profile(1.5, 0.8),
    "shown": Profile(1.0, 1.0, size=20),
}
"""Costs relative to each other. None is published. Selections are cheap, drop about half of the tuples and half of the
bytes of the others; joins are expensive."""


@dataclass(frozen=True, slots=True)
class MavWorkload:
    """A query and its streams (MAV §3.2, §5).

    Streams are Poisson processes. With bursts (Fig. 7-8), each is twice as fast at times of its own: a stream's bursts
    begin later than those of the stream before it. Joins remember tuples for a second; MavStream's remember five
    hundred (``docs/queries.md`` says why ours go by time).

    Args:
        load: Mean work that arrives per second, in seconds. Costs are set by it: the paper has neither.
        seconds: How long tuples come.
        rates: Tuples per second of each stream outside of bursts.
        scale: Multiplies the rates and divides the costs, for shorter simulations.
        every: Seconds from one burst of a stream to the next.
        burst_s: Seconds of a burst; 0: there are none.
        later: Seconds from the burst of a stream to that of the next stream.

    >>> bed = MavWorkload(load=0.8, seconds=20.0, scale=0.01)
    >>> sorted(bed.streams_of()), len(bed.query_of(Promises()).operators)
    (['s0', 's1', 's2'], 8)
    """

    load: float = 1.1
    seconds: float = 1000.0
    rates: tuple[float, ...] = RATES
    scale: float = 1.0
    every: float = 20.0
    burst_s: float = 0.0
    later: float = 1.0
    seed: int = 0

    def streams_of(self) -> dict[str, Floats]:
        """Arrival times by stream."""
        found = {}
        for number, (name, rate) in enumerate(zip(STREAMS, self.rates, strict=True)):
            schedule = RateSchedule(self._pieces(number, rate * self.scale), repeat=True, seed=3 * self.seed + number)
            found[name] = schedule.cursor().take_until(self.seconds)
        return found

    def query_of(self, promises: Promises) -> SimulatedQuery:
        """The query, with costs that make up the load."""
        mean = self.scale * (1.0 + (BURST - 1.0) * self.burst_s / self.every)
        arriving = mean * sum(rate * work_of(name) for name, rate in zip(STREAMS, self.rates, strict=True))
        unit = self.load / arriving
        profiles = {name: replace(each, cost=each.cost * unit) for name, each in _RELATIVE.items()}
        return SimulatedQuery(QUERY, profiles, INPUTS, promises)

    def _pieces(self, number: int, rate: float) -> Sequence[tuple[float, float]]:
        if not self.burst_s:
            return [(self.every, rate)]
        calm = self.every - self.burst_s
        before = calm / 2.0 + number * self.later
        return [(before, rate), (self.burst_s, BURST * rate), (calm - before, rate)]


def work_of(source: str) -> float:
    """Relative work that a tuple of a stream or behind an operator brings, up to the output.

    >>> work_of("large"), round(work_of("s2"), 3)
    (1.0, 3.428)
    """
    for name, inputs in INPUTS.items():
        if source in inputs:
            profile = _RELATIVE[name]
            return profile.cost + profile.selectivity * work_of(name)
    return 0.0
