"""How a run went over time: samples of its meters, and what they say."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Any, Final

from freshet.demo.worth import GROUPS, group
from freshet.quality.history import settled

WINDOW: Final = 2.0
"""Seconds over which freshness is averaged for the time course."""


@dataclass(frozen=True, slots=True)
class TimelineSample:
    """The meters at one time.

    Args:
        time: Seconds since packets began to come.
        waiting: Number of tuples in front of the queries, by group of worth.
        fresh: Seconds for which each query was fresh until then, as far as known.
    """

    time: float
    waiting: Mapping[str, int]
    fresh: Mapping[str, float]


def sample(meters: Mapping[str, Any], start: float) -> TimelineSample:
    """Takes a sample; ``start`` is the meters' time at which packets began to come."""
    waiting = dict.fromkeys(GROUPS, 0)
    for query in meters["queries"].values():
        waiting[group(query["weight"])] += query["waiting"]
    fresh = {name: query["freshness"] * query["seconds"] for name, query in meters["queries"].items()}
    return TimelineSample(meters["time"] - start, waiting, fresh)


@dataclass(slots=True)
class Timeline:
    """The samples of a run in the order of their times."""

    samples: list[TimelineSample] = field(default_factory=list)

    def times(self) -> list[float]:
        """When the samples were taken."""
        return [sample.time for sample in self.samples]

    def waiting(self, name: str) -> list[int]:
        """Number of tuples that wait for a group of queries."""
        return [sample.waiting[name] for sample in self.samples]

    def all_waiting(self) -> list[int]:
        """Number of tuples that wait for any query."""
        return [sum(sample.waiting.values()) for sample in self.samples]

    def freshness(self, queries: Mapping[str, Any]) -> list[float]:
        """The mean freshness of some queries over the last ``WINDOW`` seconds before each sample."""
        times = self.times()
        known = [self._settled(name) for name in queries]
        shares = []
        for number, time in enumerate(times):
            then = max(0, bisect.bisect_right(times, time - WINDOW) - 1)
            now = max(number, min(1, len(times) - 1))
            whole = times[now] - times[then]
            shares.append(fmean((fresh[now] - fresh[then]) / whole if whole > 0 else 1.0 for fresh in known))
        return shares

    def freshness_between(self, queries: Mapping[str, Any], start: float, end: float) -> float | None:
        """The mean freshness of some queries between two times; None without two samples.

        >>> samples = [TimelineSample(float(time), {}, {"q": fresh}) for time, fresh in enumerate([0.0, 1.0, 1.5, 1.5])]
        >>> course = Timeline(samples)
        >>> course.freshness_between({"q": None}, 1.0, 3.0)
        0.25
        """
        inside = [number for number, time in enumerate(self.times()) if start <= time <= end]
        if len(inside) < 2 or not queries:
            return None
        first, last = inside[0], inside[-1]
        whole = self.samples[last].time - self.samples[first].time
        known = [self._settled(name) for name in queries]
        return fmean((fresh[last] - fresh[first]) / whole for fresh in known)

    def _settled(self, query: str) -> list[float]:
        return settled(self.times(), [sample.fresh[query] for sample in self.samples])

    def peak(self) -> tuple[float, int]:
        """When the most tuples waited, and how many."""
        return max(zip(self.times(), self.all_waiting(), strict=True), key=lambda pair: pair[1], default=(0.0, 0))

    def recovered(self, name: str, flood_start: float, flood_end: float) -> float | None:
        """Seconds after the flood until no more tuples waited for a group than the maximum before it; None: never seen.

        It is 0 if that was already so at the first look after the flood.
        """
        usual = max((sample.waiting[name] for sample in self.samples if sample.time < flood_start), default=0)
        after = [sample for sample in self.samples if sample.time >= flood_end]
        if after and after[0].waiting[name] <= usual:
            return 0.0
        return next((now.time - flood_end for _, now in pairwise(after) if now.waiting[name] <= usual), None)
