"""Ways to need less memory (WU §3.5): rows are sorted first (MSF), a leading stream rests on disk (DBF), or both.

What each keeps in memory is counted at whole seconds, in three forms: what the published model says, the latest rows
that the corrected model says (FIFO), and the rows above the marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, Literal, get_args

import numpy as np

from freshet.quality.disorder import JoinInput, other_factor, published_rows, sorted_lag
from freshet.reproduce.wojoin.pair import JoinSide, KeyRows, RealRows, above
from freshet.reproduce.wojoin.pipelines import Pipeline, PipelineRun, pipeline
from freshet.reproduce.wojoin.query1 import SECONDS, Query1Run, streams_of
from freshet.reproduce.wojoin.streams import KeyedStream

BufferStrategy = Literal["plain", "msf", "dbf", "hybrid"]
STRATEGIES: Final[tuple[BufferStrategy, ...]] = get_args(BufferStrategy)
BufferForm = Literal["published", "corrected", "marks"]
FORMS: Final[tuple[BufferForm, ...]] = get_args(BufferForm)
AHEAD: Final = 50
"""Rows that a resting stream is read ahead (C), a second's worth."""


@dataclass(frozen=True, slots=True)
class MemoryRun:
    """What is run: Query 1, 2 or 3 with a seed."""

    query: Literal[1, 2, 3]
    seed: int


MeanRows = dict[tuple[BufferStrategy, BufferForm], float]
"""Mean number of rows in memory, of all streams together."""


def memory(run: MemoryRun) -> MeanRows:
    """What each strategy needs on average."""
    plans = {strategy: _joins(run, strategy) for strategy in STRATEGIES}
    times = np.arange(1.0, SECONDS if run.query == 1 else 60.0)
    return {
        (strategy, form): sum(float(each.mean()) for sides, how in joins for each in in_memory(sides, times, how, form))
        for strategy, joins in plans.items()
        for form in FORMS
    }


def of_s3(run: MemoryRun) -> MeanRows:
    """What each strategy needs of S3 in Query 1 at most (WU Fig. 3.13)."""
    sides, times = _query_1(run.seed), np.arange(1.0, SECONDS)
    return {
        (strategy, form): float(in_memory(sides, times, strategy, form)[2].max())
        for strategy in STRATEGIES
        for form in FORMS
    }


def _query_1(seed: int) -> tuple[JoinSide, ...]:
    from freshet.reproduce.wojoin.pipelines import side_of

    return tuple(map(side_of, streams_of(Query1Run(seed))))


def _joins(run: MemoryRun, strategy: BufferStrategy) -> list[tuple[tuple[JoinSide, ...], BufferStrategy]]:
    """The joins of a query, and what each of them does: only streams of sensors are sorted."""
    if run.query == 1:
        return [(_query_1(run.seed), strategy)]
    plan = pipeline(PipelineRun(run.query, run.seed))
    leaves: list[tuple[tuple[JoinSide, ...], BufferStrategy]] = [(sides, strategy) for sides in plan.leaves]
    if strategy in ("plain", "dbf"):
        return [*leaves, (plan.joined, strategy)]
    return [*leaves, (_sorted_outputs(plan, run.query), "plain" if strategy == "msf" else "dbf")]


def _sorted_outputs(plan: Pipeline, query: int) -> tuple[JoinSide, JoinSide]:
    """What the first joins give out if their streams are sorted: rows in the order of their keys, each as soon as the
    marks of all streams have passed its key."""
    first, second = (
        _sorted_output(sides, side, keys, query)
        for sides, side, keys in zip(plan.leaves, plan.joined, plan.keys, strict=True)
    )
    return first, second


def _sorted_output(sides: tuple[JoinSide, ...], output: JoinSide, keys: KeyRows, query: int) -> JoinSide:
    order = np.lexsort((output.stream.keys, keys))
    passed = np.max([_when(side, keys[order]) for side in sides], axis=0)
    there = np.isfinite(passed)
    mul = output.model.multiplicity
    factor = mul - 1.0 if query == 2 else other_factor(mul - 1.0, plan_dependent(output.model, sides))
    model = JoinInput(factor, output.model.rate, mul)
    return JoinSide(KeyedStream(output.stream.keys[order][there], passed[there]), model)


def plan_dependent(model: JoinInput, sides: Sequence[JoinSide]) -> float:
    """The dependent scrambling factor that a bound by another column was made with (WU Eq. 3.11)."""
    from freshet.quality.disorder import joined_input

    return model.factor - 2.0 * joined_input([each.model for each in sides]).factor


def _when(side: JoinSide, keys: KeyRows) -> RealRows:
    """When the mark of a stream has passed some keys; infinity: never."""
    rows = np.searchsorted(side.heights, keys) + int(side.model.factor)
    found = np.full(len(keys), np.inf)
    inside = rows <= len(side.stream.times)
    found[inside] = side.stream.times[np.maximum(rows[inside] - 1, 0)]
    return found


def in_memory(sides: Sequence[JoinSide], times: RealRows, strategy: BufferStrategy, form: BufferForm) -> list[RealRows]:
    """Rows of each stream of a join in memory, at some times."""
    if form == "published":
        return [_published(sides, place, times, strategy) for place in range(len(sides))]
    came = [side.came(times) for side in sides]
    if strategy in ("plain", "msf", "hybrid"):
        read = came
    else:
        heights = [side.heights[rows] for side, rows in zip(sides, came, strict=True)]
        read = [
            np.minimum(rows, side.passed(_others(heights, place)) + AHEAD)
            for place, (side, rows) in enumerate(zip(sides, came, strict=True))
        ]
    marks = [side.mark(rows) for side, rows in zip(sides, read, strict=True)]
    found = []
    for place, side in enumerate(sides):
        low, factor = _others(marks, place), int(side.model.factor)
        if strategy in ("msf", "hybrid"):
            waits = np.minimum(came[place], factor) if form == "corrected" else above(side, came[place], marks[place])
            joins = above(side, came[place], np.minimum(low, marks[place])) - above(side, came[place], marks[place])
            found.append((waits + (joins if strategy == "msf" else np.minimum(joins, AHEAD))).astype(float))
        elif form == "corrected":
            found.append(np.maximum(1.0, read[place] - side.passed(low)))
        else:
            found.append(above(side, read[place], low).astype(float))
    return found


def _others(values: Sequence[KeyRows], place: int) -> KeyRows:
    return reduce(np.minimum, [each for at, each in enumerate(values) if at != place])


def _published(sides: Sequence[JoinSide], place: int, times: RealRows, strategy: BufferStrategy) -> RealRows:
    """What WU §3.5 says, with rates of the last second."""
    own, found = sides[place], np.empty(len(times))
    came = [side.came(times) for side in sides]
    rates = [side.rate(times) for side in sides]
    for at in range(len(times)):
        inputs = [JoinInput(side.model.factor, float(rates[n][at]), side.model.multiplicity)
                  for n, side in enumerate(sides)]  # fmt: skip
        said = []
        for other in (other for other in range(len(sides)) if other != place):
            lag = _lag(own, sides[other], int(came[place][at]), int(came[other][at]))
            one, two = inputs[place], inputs[other]
            if strategy == "plain":
                said.append(published_rows(one, two, lag))
            elif strategy == "msf":
                said.append(published_rows(one.ordered, two.ordered, sorted_lag(one, two, lag)) + one.factor)
            elif strategy == "dbf":
                said.append(published_rows(one, two, min(lag, AHEAD)))
            else:
                ahead = min(sorted_lag(one, two, lag), AHEAD)
                said.append(published_rows(one.ordered, two.ordered, ahead) + one.factor)
        found[at] = min(float(came[place][at]), max(said))
    return found


def _lag(own: JoinSide, other: JoinSide, came: int, came_other: int) -> float:
    """The lag, when the row came that takes the place of the other's latest one (WU Def. 3.2.6)."""
    if not came_other:
        return float(came)
    stands_for = other.ordered[came_other - 1]
    return float(came - np.searchsorted(own.ordered, stands_for, side="right"))
