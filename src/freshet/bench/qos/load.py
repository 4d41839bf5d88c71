"""The load of ``freshet bench qos``: tight and loose queries, and arrivals with a storm that brings too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.bench.freshness.load import LoadBatch, MeasuredCosts
from freshet.bench.freshness.queries import Question
from freshet.model import Curve

LINKS: Final = (128, 256, 512)
"""Links of arithmetic in a query: rows are expensive, so that small arrivals keep Spark busy."""
TIMES: Final = 5.0
"""Work of a step over one arrival, over its overhead, unless trains are to have another size."""
LONG: Final = 4
"""Number of arrivals in a train for the capacity: in a backlog trains are long and share their overhead."""
TIGHT: Final = 0.5
"""Promise of the tight queries, in rounds (one arrival for every query)."""
LOOSE: Final = 0.35
"""Promise of the loose queries, in lengths of a storm, as in CAR §4.6.2 (2 s of 5.8 s)."""


@dataclass(frozen=True, slots=True)
class Storm:
    """A calm, a storm and a calm.

    Args:
        seconds: Seconds of all three.
        calm: Load outside the storm, as a share of the capacity.
        storm: Load in the storm.
        share: Share of the time that is storm, in the middle.
        times: Work of a step over one arrival, over its overhead.
    """

    seconds: float
    calm: float = 0.6
    storm: float = 1.3
    share: float = 0.4
    times: float = TIMES

    @property
    def length(self) -> float:
        """Seconds of the storm."""
        return self.seconds * self.share

    def phases(self) -> Iterator[tuple[float, float, float]]:
        """(begin, end, load) of each phase."""
        begin = (self.seconds - self.length) / 2.0
        yield 0.0, begin, self.calm
        yield begin, begin + self.length, self.storm
        yield begin + self.length, self.seconds, self.calm

    def rows(self, costs: MeasuredCosts, questions: Sequence[Question]) -> int:
        """Number of rows of an arrival."""
        work = sum(costs.per_row(each.name) for each in questions) / len(questions)
        return max(1, round(self.times * costs.overhead / work))

    def round(self, costs: MeasuredCosts, questions: Sequence[Question]) -> float:
        """Seconds that all queries take for an arrival on every stream, in long trains: the capacity."""
        rows = self.rows(costs, questions)
        return sum(costs.per_row(each.name) * rows + costs.overhead / LONG for each in questions)

    def events(self, costs: MeasuredCosts, questions: Sequence[Question], seed: int) -> list[LoadBatch]:
        """Arrivals in order; on each stream like a Poisson process with a known number of arrivals in each phase."""
        rng = np.random.default_rng([seed, 53])
        rows, each_takes = self.rows(costs, questions), self.round(costs, questions)
        events = [LoadBatch(0.0, questions[0].stream, rows, 0)]
        for begin, end, load in self.phases():
            streams = dict.fromkeys(question.stream for question in questions)
            count = max(1, round(load * (end - begin) / each_takes * len(streams)))
            # Dealt out in turn: all streams get the same number, give or take one.
            dealt = np.resize(rng.permutation(list(streams)), count)
            for time, stream in zip(begin + rng.random(count) * (end - begin), dealt, strict=True):
                events.append(LoadBatch(float(time), str(stream), rows, int(rng.integers(1 << 31))))
        return sorted(events, key=lambda event: event.time)

    def curves(self, costs: MeasuredCosts, questions: Sequence[Question]) -> dict[str, Curve]:
        """Curves of the tight and of the loose queries; each falls to nothing at twice its promise (CAR §3.4.1)."""
        promises = {True: TIGHT * self.round(costs, questions), False: LOOSE * self.length}
        return {
            each.name: Curve.deadline(promises[tight], promises[tight])
            for each, tight in zip(questions, tight_ones(questions), strict=True)
        }


def tight_ones(questions: Sequence[Question]) -> list[bool]:
    """Which queries are tight: every other one on every stream.

    >>> tight_ones(asked(4, ("s1", "s2")))
    [True, True, False, False]
    """
    seen: dict[str, int] = {}
    tight = []
    for each in questions:
        seen[each.stream] = seen.get(each.stream, 0) + 1
        tight.append(seen[each.stream] % 2 == 1)
    return tight


def asked(count: int, streams: tuple[str, ...], seed: int = 0) -> list[Question]:
    """Queries dealt out to the streams in turn; tight and loose ones have the same costs and selectivities."""
    rng = np.random.default_rng([seed, 54])
    half = (count + 1) // 2
    links, shares = np.resize(LINKS, half), np.resize((0.2, 0.5, 0.8), half)
    order = [*rng.permutation(half), *rng.permutation(half)][:count]
    return [
        Question(f"q{number}", streams[number % len(streams)], int(links[place]), float(shares[place]), number)
        for number, place in enumerate(order)
    ]
