"""The load of ``freshet bench qos``: the network of CAR Table 4.4, scaled to Spark, and the storm of CAR §4.6.2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.bench.freshness.load import LoadBatch, MeasuredCosts
from freshet.bench.freshness.queries import Question
from freshet.model import Curve

STREAM: Final = "s1"
"""All queries read it, so that all of them get their tuples together, as in Table 4.4."""
LINKS: Final = 256
"""Links of arithmetic in a query: all boxes of Table 4.4 cost the same."""
SELECTIVITY: Final = 0.2
"""Few rows go out, so that the overhead of a step hardly depends on its rows."""
TIMES: Final = 5.0
"""Work of a step over one arrival, over its overhead, unless trains are to have another size."""
ROUND: Final = 0.286
"""Seconds that one tuple for each application takes in the testbed of Table 4.4: 3,500 tuples/s (Fig. 4.15)."""
DEADLINES: Final = tuple(deadline / ROUND for deadline in (0.075, 0.150, 0.225, 0.300))
"""The deadlines of Table 4.4 in rounds; they go to the queries in turn."""
DROP: Final = 1e-4 / ROUND
"""Rounds from a curve's first critical point to its second (CAR §4.3.2)."""


@dataclass(frozen=True, slots=True)
class StormPhase:
    """A part of the run: evenly spaced arrivals that make up a load."""

    begin: float
    end: float
    load: float
    arrivals: int


@dataclass(frozen=True, slots=True)
class Storm:
    """A calm, a storm and a calm (CAR §4.6.2): 60 % of the capacity, 130 % and 60 %.

    As in the reproduction of that section, the capacity is what could be processed without overhead, and a calm is
    half as long as in the thesis on either side of the storm: 20, 15 and 20 arrivals for each query.

    Args:
        times: Work of a step over one arrival, over its overhead.
        calm: Load outside the storm, as a share of the capacity.
        storm: Load in the storm.
        counts: Arrivals of the three phases.
    """

    times: float = TIMES
    calm: float = 0.6
    storm: float = 1.3
    counts: tuple[int, int, int] = (20, 15, 20)

    def rows(self, costs: MeasuredCosts, questions: Sequence[Question]) -> int:
        """Number of rows of an arrival."""
        work = sum(costs.per_row(each.name) for each in questions) / len(questions)
        return max(1, round(self.times * costs.overhead / work))

    def work(self, costs: MeasuredCosts, questions: Sequence[Question]) -> float:
        """Seconds of work that an arrival brings to all queries: at 100 % one comes in each such time."""
        return self.rows(costs, questions) * sum(costs.per_row(each.name) for each in questions)

    def round(self, costs: MeasuredCosts, questions: Sequence[Question]) -> float:
        """Seconds that all queries take for an arrival, one step each."""
        return self.work(costs, questions) + costs.overhead * len(questions)

    def phases(self, costs: MeasuredCosts, questions: Sequence[Question]) -> Iterator[StormPhase]:
        """The calm, the storm, the calm."""
        begin, work = 0.0, self.work(costs, questions)
        for load, count in zip((self.calm, self.storm, self.calm), self.counts, strict=True):
            end = begin + count * work / load
            yield StormPhase(begin, end, load, count)
            begin = end

    def seconds(self, costs: MeasuredCosts, questions: Sequence[Question]) -> float:
        """Seconds of a run."""
        return max(phase.end for phase in self.phases(costs, questions))

    def events(self, costs: MeasuredCosts, questions: Sequence[Question], seed: int) -> list[LoadBatch]:
        """Arrivals in order, evenly spaced in each phase; the seed says which rows they bring."""
        places = np.random.default_rng([seed, 53])
        rows = self.rows(costs, questions)
        return [
            LoadBatch(float(time), STREAM, rows, int(places.integers(1 << 31)))
            for phase in self.phases(costs, questions)
            for time in np.linspace(phase.begin, phase.end, phase.arrivals, endpoint=False)
        ]

    def curves(self, costs: MeasuredCosts, questions: Sequence[Question]) -> dict[str, Curve]:
        """Full worth up to a deadline, none soon after it; the four deadlines go to the queries in turn."""
        seconds = self.round(costs, questions)
        return {
            each.name: Curve.deadline(DEADLINES[number % len(DEADLINES)] * seconds, DROP * seconds)
            for number, each in enumerate(questions)
        }


def asked(count: int) -> list[Question]:
    """Queries that cost the same.

    >>> [(each.name, each.stream, each.links) for each in asked(2)]
    [('q0', 's1', 256), ('q1', 's1', 256)]
    """
    return [Question(f"q{number}", STREAM, LINKS, SELECTIVITY, number) for number in range(count)]
