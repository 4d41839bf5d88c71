"""The testbeds of CAR §3.4.1, Tables 4.2 and 4.4: trees of boxes with tight and loose latency curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from freshet.arrivals import Poisson
from freshet.model import Curve
from freshet.simulation.boxes import BoxTree
from freshet.simulation.executor import Profile

Floats = NDArray[np.float64]

Process = Literal["even", "staggered", "poisson"]
"""How tuples arrive; see :class:`AuroraWorkload`."""
DROP: Final = 1e-4
"""Seconds from a curve's first critical point to its second (CAR §4.3.2)."""


@dataclass(frozen=True, slots=True)
class AuroraWorkload:
    """Applications as trees of boxes; the defaults are those of CAR Table 4.2.

    *Trees* have ``depth`` levels and ``fanout`` children at each box; tuples enter at the leaves, all of which get the
    same rate. Boxes let everything through. They all cost ``cost``, or costs are drawn evenly from ``cost_range``.

    *Curves* have full utility up to a deadline and none from 0.1 ms after it; ``deadlines`` go to the applications in
    turn, the tightest to the first. With ``deadline_range`` each is drawn evenly from it, and its utility falls to none
    at twice the deadline (the three points of CAR §3.4.1).

    *Arrivals* are evenly spaced, as CAR §3.4.4 says of its workload: at all inputs at once (``even``), which the
    clusters of its Fig. 4.2 and the deadlines of its Table 4.4 suggest, or one input after the other (``staggered``);
    or they are Poisson. ``burst`` tuples are gathered and delivered together (CAR §3.4.4).

    Args:
        rate: Tuples per second, all inputs together.
        tuples: How many, all inputs together.
        heavy: Share of all tuples that goes to the first application (CAR §4.6.1); 0: an equal share.
        calm, storm: Tuples of a calm and of a stormy period, and ``storm_rate`` while it lasts (CAR §4.6.2); 0: no
            storms.

    >>> bed = AuroraWorkload(applications=2, depth=3, fanout=2, tuples=80)
    >>> trees = bed.trees()
    >>> len(trees[0].profiles), len(trees[0].inputs), sum(map(len, bed.arrivals().values()))
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

    def trees(self) -> list[BoxTree]:
        """The applications."""
        after = _tree(self.depth, self.fanout)
        generator = np.random.default_rng([self.seed, 0xA0])
        return [
            BoxTree(f"a{number}", self._profiles(len(after), generator), after, self._curve(number, generator))
            for number in range(self.applications)
        ]

    def arrivals(self) -> dict[tuple[int, int], Floats]:
        """Arrival times by application and input box."""
        inputs = self.inputs
        shares = self._shares()
        per_input = {
            (number, place): self._times(number * len(inputs) + place, shares[number] / len(inputs))
            for number in range(self.applications)
            for place in inputs
        }
        return {place: _gathered(times, self.burst) for place, times in per_input.items()}

    @property
    def inputs(self) -> tuple[int, ...]:
        """The places of the input boxes of an application."""
        after = _tree(self.depth, self.fanout)
        return tuple(place for place in range(len(after)) if place not in after)

    @property
    def capacity(self) -> float:
        """Tuples per second that would keep the boxes busy all the time, were there no overhead (CAR §3.4.1)."""
        return 1.0 / self.work

    @property
    def work(self) -> float:
        """Mean seconds of processing per tuple."""
        trees = self.trees()
        inputs = self.inputs
        paths = [sum(tree.profiles[box].cost for box in tree.downstream(place)) for tree in trees for place in inputs]
        return float(np.mean(paths))

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

    @property
    def _inputs_of_all(self) -> int:
        return self.applications * len(self.inputs)

    def _shares(self) -> list[float]:
        if not self.heavy:
            return [1.0 / self.applications] * self.applications
        return [self.heavy, *[(1.0 - self.heavy) / (self.applications - 1)] * (self.applications - 1)]

    def _times(self, number: int, share: float) -> Floats:
        """Arrivals of one input: by a clock of its own in tuples, then in seconds by the periods' rates."""
        count = max(1, round(share * self.tuples))
        if self.process != "poisson":
            # One input after the other, or all at once.
            first = number / self._inputs_of_all if self.process == "staggered" else 0.0
            marks: Floats = (np.arange(count, dtype=np.float64) + first) / share
        else:
            marks = Poisson(share, seed=100_003 * self.seed + number).first(count)
        begins, rates, places = [], [], []
        place = 0.0
        for begin, end, stormy in self.periods():
            rate = self.storm_rate if stormy else self.rate
            begins.append(begin)
            rates.append(rate)
            places.append(place)
            place += (end - begin) * rate
        which = np.clip(np.searchsorted(places, marks, side="right") - 1, 0, None)
        times: Floats = np.array(begins)[which] + (marks - np.array(places)[which]) / np.array(rates)[which]
        return times

    def _profiles(self, count: int, generator: np.random.Generator) -> tuple[Profile, ...]:
        if self.cost_range is None:
            return (Profile(self.cost),) * count
        return tuple(Profile(float(cost)) for cost in generator.uniform(*self.cost_range, count))

    def _curve(self, number: int, generator: np.random.Generator) -> Curve:
        if self.deadline_range is not None:
            deadline = float(generator.uniform(*self.deadline_range))
            return Curve.deadline(deadline, deadline)
        return Curve.deadline(self.deadlines[number % len(self.deadlines)], DROP)


def _tree(depth: int, fanout: int) -> tuple[int | None, ...]:
    """The box after each box: leaves first, the output box last.

    >>> _tree(3, 2)
    (4, 4, 5, 5, 6, 6, None)
    """
    after: list[int | None] = []
    first = 0
    for level in range(depth - 1, 0, -1):
        count = fanout**level
        after += [first + count + place // fanout for place in range(count)]
        first += count
    return (*after, None)


def _gathered(times: Floats, burst: int) -> Floats:
    """Each ``burst`` tuples come with the first of them."""
    if burst == 1:
        return times
    return times[np.arange(len(times)) // burst * burst]
