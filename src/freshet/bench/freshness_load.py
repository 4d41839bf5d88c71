"""The load of ``freshet bench freshness``: what steps and rows cost, and arrivals that need a share of all time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from freshet.bench.freshness_queries import Question

if TYPE_CHECKING:
    from freshet.bench.freshness_rig import StepNote

BURST: Final = 4
"""Rows of a burst over those of an ordinary arrival."""
SUFFIXES: Final = ("filter_1", "filter_2", "project")


@dataclass(frozen=True, slots=True)
class Event:
    """Rows that arrive together, ``time`` seconds after the start; ``place`` says which rows they are."""

    time: float
    stream: str
    rows: int
    place: int


@dataclass(frozen=True, slots=True)
class Costs:
    """What was measured.

    Args:
        overhead: Seconds of a step that are not work, mean.
        operators: (seconds per tuple that enters, tuples out per tuple in) by operator name.
    """

    overhead: float
    operators: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, steps: Sequence[StepNote]) -> Costs:
        """From steps in which every query ran."""
        sums: dict[str, list[float]] = {}
        for name, run in (noted for step in steps for noted in step.runs):
            total = sums.setdefault(name, [0.0, 0.0, 0.0])
            for index, value in enumerate((run.seconds, run.rows_in, run.rows_out)):
                total[index] += value
        operators = {
            name: (seconds / rows_in, rows_out / rows_in) if rows_in else (0.0, 1.0)
            for name, (seconds, rows_in, rows_out) in sums.items()
        }
        return cls(sum(step.overhead for step in steps) / len(steps), operators)

    def profile(self, query: str) -> tuple[tuple[float, float], ...]:
        """(cost, selectivity) of the operators of a query, in their order."""
        return tuple(self.operators[f"{query}.{suffix}"] for suffix in SUFFIXES)

    def per_row(self, query: str) -> float:
        """Expected seconds of a query for each row of its stream."""
        total, reach = 0.0, 1.0
        for cost, selectivity in self.profile(query):
            total, reach = total + reach * cost, reach * selectivity
        return total


@dataclass(frozen=True, slots=True)
class Load:
    """How much arrives, and in what form.

    Args:
        rows: Of an ordinary arrival.
        arrivals: Of an ordinary stream.
        bursts: Of a bursty stream.
        bursty: The bursty streams.
    """

    rows: int
    arrivals: int
    bursts: int
    bursty: tuple[str, ...]

    def count(self, stream: str) -> tuple[int, int]:
        """(arrivals, rows of each) of a stream."""
        if stream in self.bursty:
            return self.bursts, BURST * self.rows
        return self.arrivals, self.rows

    def events(self, streams: Sequence[str], seconds: float, seed: int) -> list[Event]:
        """The arrivals, in order: as of Poisson processes of which one knows how many tuples came.

        The counts are fixed because the utilization of a short run would else be anything; the first arrival is at 0.
        """
        rng = np.random.default_rng([seed, 52])
        drawn = []
        for stream in streams:
            number, rows = self.count(stream)
            drawn += [(float(time), stream, rows) for time in rng.random(number) * seconds]
        drawn.sort()
        first = drawn[0][0]
        return [Event(time - first, stream, rows, int(rng.integers(1 << 31))) for time, stream, rows in drawn]


def plan_load(
    costs: Costs, questions: Sequence[Question], bursty: Sequence[str], seconds: float, utilization: float, times: float
) -> Load:
    """The load that takes ``utilization`` of the time if every arrival is a step of each of its queries.

    Of all such loads, the one with the most arrivals of which a step's work is still ``times`` its overhead. (Where
    arrivals wait and are taken together, steps are fewer and their work is more.)
    """
    streams = tuple(dict.fromkeys(each.stream for each in questions))
    readers = {stream: [each.name for each in questions if each.stream == stream] for stream in streams}
    per_row = {stream: sum(costs.per_row(name) for name in names) for stream, names in readers.items()}
    most_steps = utilization * seconds / ((1.0 + times) * costs.overhead)
    load = Load(1, 1, 1, tuple(bursty))
    while True:
        arrivals = load.arrivals + 1
        wider = Load(1, arrivals, max(1, arrivals // BURST), tuple(bursty))
        if _steps(wider, readers) > most_steps:
            break
        load = wider
    steps = _steps(load, readers)
    work = max(utilization * seconds - steps * costs.overhead, steps * costs.overhead)
    demand = sum(per_row[stream] * load.count(stream)[0] * load.count(stream)[1] for stream in streams)
    return Load(max(1, round(work / demand)), load.arrivals, load.bursts, load.bursty)


def _steps(load: Load, readers: Mapping[str, Sequence[str]]) -> int:
    return sum(load.count(stream)[0] * len(names) for stream, names in readers.items())
