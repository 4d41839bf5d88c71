"""The testbeds of CAR §3.4.1, Tables 4.2 and 4.4: trees of boxes with tight and loose latency curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from freshet.arrivals import Poisson
from freshet.model import Curve, Promises
from freshet.simulation.executor import Profile
from freshet.simulation.outcome import Floats
from freshet.simulation.world import SimulatedQuery

Process = Literal["even", "staggered", "poisson", "batches"]
"""How tuples arrive; see :class:`AuroraWorkload`."""
DROP: Final = 1e-4
"""Seconds from a curve's first critical point to its second (CAR §4.3.2)."""


@dataclass(frozen=True, slots=True)
class AuroraWorkload:
    """Applications as trees of boxes; the defaults are those of CAR Table 4.2.

    *Trees* have ``depth`` levels and ``fanout`` children at each box. Tuples enter at the leaves; all leaves get the
    same rate. Boxes let everything through. They all cost ``cost``, or costs are drawn evenly from ``cost_range``.

    *Curves* have full utility up to a deadline and none from 0.1 ms after it. ``deadlines`` go to the applications in
    turn, the tightest to the first. With ``deadline_range`` each deadline is drawn evenly from it, and utility falls to
    none at twice the deadline (the three points of CAR §3.4.1).

    *Arrivals* are evenly spaced, as CAR §3.4.4 says of its workload, or Poisson. Evenly spaced tuples come to all
    inputs at once (``even``), as the clusters of its Fig. 4.2 and the deadlines of its Table 4.4 suggest, or to one
    input after the other (``staggered``). ``burst`` tuples are gathered and delivered together (CAR §3.4.4). With
    ``batches`` all inputs get tuples at the same moments, too, but each a number of its own: ``burst`` in the mean, at
    least one ("tuples will appear at inputs in batches", CAR §4.6).

    Args:
        rate: Tuples per second, all inputs together.
        tuples: Number of tuples, all inputs together.
        heavy: Share of all tuples that goes to the first application (CAR §4.6.1); 0: an equal share.
        calm, storm: Number of tuples of a calm and of a stormy period; ``storm_rate`` is the rate in storms
            (CAR §4.6.2); 0: no storms.

    >>> bed = AuroraWorkload(applications=2, depth=3, fanout=2, tuples=80)
    >>> queries, streams = bed.queries_of(), bed.streams_of()
    >>> len(queries[0].operators), len(queries[0].streams), sum(map(len, streams.values()))
    (7, 4, 80)
    """

    applications: int = 20
    depth: int = 5
    fanout: int = 1
    cost: float = 1e-4
    cost_range: tuple[float, float] | None = None
    deadlines: tuple[float, ...] = (0.01, 2.0)
    deadline_range: tuple[float, float] | None = None
    rate: float = 1200.0
    tuples: int = 100_000
    process: Process = "even"
    burst: int = 1
    heavy: float = 0.0
    calm: int = 0
    storm: int = 0
    storm_rate: float = 0.0
    seed: int = 0

    def queries_of(self) -> list[SimulatedQuery]:
        """The applications."""
        return [
            SimulatedQuery.tree(f"a{number}", profiles, self.after, Promises(curve=curve))
            for number, (profiles, curve) in enumerate(self._drawn())
        ]

    def streams_of(self) -> dict[str, Floats]:
        """Arrival times by input."""
        inputs, found = self._inputs, {}
        for number, share in enumerate(self._shares()):
            for place in range(inputs):
                times = self._times(number * inputs + place, share / inputs)
                if self.process == "batches":
                    found[f"a{number}.{place}.in"] = self._batched(times, number * inputs + place)
                    continue
                # Each ``burst`` tuples come with the first of them.
                found[f"a{number}.{place}.in"] = times[np.arange(len(times)) // self.burst * self.burst]
        return found

    @property
    def after(self) -> tuple[int | None, ...]:
        """The box after each box of an application: input boxes first, the output box last.

        >>> AuroraWorkload(depth=3, fanout=2).after
        (4, 4, 5, 5, 6, 6, None)
        """
        after: list[int | None] = []
        first = 0
        for level in range(self.depth - 1, 0, -1):
            count = self.fanout**level
            after += [first + count + place // self.fanout for place in range(count)]
            first += count
        return (*after, None)

    @property
    def _inputs(self) -> int:
        return int(self.fanout ** (self.depth - 1))

    @property
    def capacity(self) -> float:
        """Tuples per second that would keep the boxes busy all the time if there were no overhead (CAR §3.4.1)."""
        return 1.0 / self.work

    @property
    def work(self) -> float:
        """Mean seconds of processing per tuple."""
        after = self.after
        return float(np.mean([_behind(after, profiles)[: self._inputs] for profiles, _ in self._drawn()]))

    def periods(self) -> list[tuple[float, float, bool]]:
        """(begin, end, whether it is a storm) of all periods."""
        found: list[tuple[float, float, bool]] = []
        now, left = 0.0, self.tuples
        while left > 0:
            stormy = bool(len(found) % 2) if self.storm else False
            count = min(left, (self.storm if stormy else self.calm) or left)
            seconds = count / (self.storm_rate if stormy else self.rate)
            found.append((now, now + seconds, stormy))
            now, left = now + seconds, left - count
        return found

    def _shares(self) -> list[float]:
        if not self.heavy:
            return [1.0 / self.applications] * self.applications
        return [self.heavy, *[(1.0 - self.heavy) / (self.applications - 1)] * (self.applications - 1)]

    def _times(self, number: int, share: float) -> Floats:
        """Arrivals of one input: first by a clock of its own, in tuples, then in seconds by the periods' rates."""
        count = max(1, round(share * self.tuples))
        if self.process != "poisson":
            # One input after the other, each with all of a burst, or all at once.
            inputs = self.applications * self._inputs
            first = self.burst * number / inputs if self.process == "staggered" else 0.0
            marks: Floats = (np.arange(count, dtype=np.float64) + first) / share
        else:
            marks = Poisson(share, seed=100_003 * self.seed + number).first(count)
        begins, ends, stormy = (np.array(each) for each in zip(*self.periods(), strict=True))
        rates = np.where(stormy, self.storm_rate, self.rate)
        places = np.cumsum([0.0, *(ends - begins) * rates])[:-1]
        which = np.searchsorted(places, marks, side="right") - 1
        times: Floats = begins[which] + (marks - places[which]) / rates[which]
        return times

    def _batched(self, times: Floats, number: int) -> Floats:
        """At each moment of a burst comes a drawn number of tuples, at least one; at most as many in all as before."""
        moments = times[:: self.burst]
        draws = 1 + np.random.default_rng([self.seed, 0xBA, number]).poisson(self.burst - 1.0, len(moments))
        batched: Floats = np.repeat(moments, draws)[: len(times)]
        return batched

    def _drawn(self) -> list[tuple[tuple[Profile, ...], Curve]]:
        """Boxes and curve of each application."""
        generator, count = np.random.default_rng([self.seed, 0xA0]), len(self.after)
        return [
            (self._profiles(count, generator), self._curve(number, generator)) for number in range(self.applications)
        ]

    def _profiles(self, count: int, generator: np.random.Generator) -> tuple[Profile, ...]:
        if self.cost_range is None:
            return (Profile(self.cost),) * count
        return tuple(Profile(float(cost)) for cost in generator.uniform(*self.cost_range, count))

    def _curve(self, number: int, generator: np.random.Generator) -> Curve:
        if self.deadline_range is not None:
            deadline = float(generator.uniform(*self.deadline_range))
            return Curve.deadline(deadline, deadline)
        return Curve.deadline(self.deadlines[number % len(self.deadlines)], DROP)


def _behind(after: tuple[int | None, ...], profiles: tuple[Profile, ...]) -> list[float]:
    """Seconds that a tuple takes from each box to the output."""
    seconds = [profile.cost for profile in profiles]
    for place in reversed(range(len(after))):
        reader = after[place]
        if reader is not None:
            seconds[place] += seconds[reader]
    return seconds
