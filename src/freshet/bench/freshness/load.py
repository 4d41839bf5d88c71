"""The load of ``freshet bench freshness``: what steps and rows cost, and arrivals that need a share of the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.bench.freshness.fit import NO_HANDLING, SUFFIXES, Handling
from freshet.bench.freshness.queries import Question
from freshet.bench.rig.notes import StepNote

BURST: Final = 4
"""Number of rows of a burst over that of an ordinary arrival."""
LEAST_OVERHEAD: Final = 1e-3
"""Seconds; no step of Spark takes less, whatever a bad measurement says."""


@dataclass(frozen=True, slots=True)
class LoadBatch:
    """Rows that arrive together, ``time`` seconds after the start; ``place`` says which rows they are."""

    time: float
    stream: str
    rows: int
    place: int


@dataclass(frozen=True, slots=True)
class MeasuredCosts:
    """What was measured.

    Args:
        overhead: Mean seconds of a step, whatever its rows.
        operators: (seconds per tuple that enters, tuples out per tuple in) by operator name. The cost of handling rows
            outside of operators is part of the first and of the last operator of a query.
        handling: That cost.
    """

    overhead: float
    operators: Mapping[str, tuple[float, float]]
    handling: Handling = NO_HANDLING

    @classmethod
    def of(cls, steps: Sequence[StepNote], handling: Handling = NO_HANDLING) -> MeasuredCosts:
        """Computes costs from steps."""
        sums: dict[str, list[float]] = {}
        for name, run in (noted for step in steps for noted in step.runs):
            total = sums.setdefault(name, [0.0, 0.0, 0.0])
            for index, value in enumerate((run.seconds, run.rows_in, run.rows_out)):
                total[index] += value
        for name, total in sums.items():
            total[0] += handling.row_in * total[1] if name.endswith(SUFFIXES[0]) else 0.0
            total[0] += handling.row_out * total[2] if name.endswith(SUFFIXES[-1]) else 0.0
        operators = {
            name: (seconds / rows_in, rows_out / rows_in) if rows_in else (0.0, 1.0)
            for name, (seconds, rows_in, rows_out) in sums.items()
        }
        overhead = sum(map(handling.rest, steps)) / len(steps)
        return cls(max(overhead, LEAST_OVERHEAD), operators, handling)

    def over(self, earlier: MeasuredCosts) -> MeasuredCosts:
        """These costs, with earlier ones for operators that have not run since."""
        return MeasuredCosts(self.overhead, {**earlier.operators, **self.operators}, self.handling)

    def profile(self, query: str) -> tuple[tuple[float, float], ...]:
        """(cost, selectivity) of the operators of a query, in order."""
        return tuple(self.operators[f"{query}.{suffix}"] for suffix in SUFFIXES)

    def per_row(self, query: str) -> float:
        """Expected seconds of a query for each row of its stream."""
        total, reach = 0.0, 1.0
        for cost, selectivity in self.profile(query):
            total, reach = total + reach * cost, reach * selectivity
        return total


@dataclass(frozen=True, slots=True)
class Load:
    """How much is to arrive.

    Args:
        seconds: Seconds of a run.
        utilization: Share of that time that the arrivals need if each is a step of every query that reads it.
        times: Minimum work of such a step over its overhead. (If arrivals wait and are taken together, there are fewer
            steps with more work.)
        bursty: The bursty streams: arrivals there are :data:`BURST` times as large, and as much rarer.
    """

    seconds: float
    utilization: float
    times: float
    bursty: frozenset[str]

    def events(self, costs: MeasuredCosts, questions: Sequence[Question], seed: int) -> list[LoadBatch]:
        """Arrivals in order, like those of Poisson processes with a known number of tuples.

        That number and the demand are fixed, because otherwise the utilization of a short run could be anything. There
        are as many arrivals as the overhead allows; the first is at 0.
        """
        rng = np.random.default_rng([seed, 52])
        readers = _readers(questions)
        streams = list(readers)
        weights = np.array([1.0 if stream in self.bursty else BURST for stream in streams])
        steps = self.utilization * self.seconds / ((1.0 + self.times) * costs.overhead)
        number = max(2, int(steps * len(streams) / len(questions)))
        drawn = [streams[place] for place in rng.choice(len(streams), number, p=weights / weights.sum())]
        # Streams have more or fewer readers: by chance a draw may have more steps than the overhead allows.
        taken = np.cumsum([len(readers[stream]) for stream in drawn]) <= steps
        chosen = drawn[: max(2, int(taken.sum()))]
        times = np.sort(rng.random(len(chosen))) * self.seconds
        rows = self._rows(costs, readers, chosen)
        return [
            LoadBatch(float(time - times[0]), stream, rows * self._size(stream), int(rng.integers(1 << 31)))
            for time, stream in zip(times, chosen, strict=True)
        ]

    def _rows(self, costs: MeasuredCosts, readers: Mapping[str, Sequence[str]], chosen: Sequence[str]) -> int:
        """Number of rows of an ordinary arrival, such that all arrivals together make up the wanted demand."""
        overhead = costs.overhead * sum(len(readers[stream]) for stream in chosen)
        # If the time is too short even for that, there is at least as much work as overhead, or as is wanted.
        work = max(self.utilization * self.seconds - overhead, min(1.0, self.times) * overhead)
        per_row = {stream: sum(map(costs.per_row, names)) for stream, names in readers.items()}
        return max(1, round(work / sum(per_row[stream] * self._size(stream) for stream in chosen)))

    def _size(self, stream: str) -> int:
        return BURST if stream in self.bursty else 1


def _readers(questions: Sequence[Question]) -> dict[str, list[str]]:
    readers: dict[str, list[str]] = {}
    for each in questions:
        readers.setdefault(each.stream, []).append(each.name)
    return readers
