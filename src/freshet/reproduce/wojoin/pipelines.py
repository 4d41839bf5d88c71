"""Queries 2 and 3 of WU §3.6: six streams in two joins of three, whose outputs S7 and S8 meet in a third.

In Query 2 they meet on the same column, in Query 3 on another one, whose order follows that of the first within the
dependent scrambling factor. The streams of the first join are held up for a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

import numpy as np

from freshet.quality.disorder import (
    JoinInput,
    dependent_scrambling,
    joined_dependent,
    joined_input,
    multiplicity,
    other_factor,
    scrambling_factor,
)
from freshet.reproduce.wojoin.pair import Buffers, JoinSide, KeyRows, buffers
from freshet.reproduce.wojoin.streams import MEAN_GAP, KeyedStream, keyed_stream

SECONDS: Final = 60.0
HELD_UP: Final = ((10.0, 40.0, 1 / 8),)
"""The streams of the first join come at an eighth of their rate for 30 s, so that its output lags (WU Fig. 3.8)."""


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """What is run.

    Args:
        query: 2: the last join is on the same column; 3: on another one.
        seed: Draws the streams, their scrambling factors (0 to ``factor``) and the dependent ones (0 to ``dependent``).
        factor: Greatest scrambling factor.
        dependent: Greatest dependent scrambling factor.
    """

    query: Literal[2, 3]
    seed: int
    factor: int = 500
    dependent: int = 300


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The joins of a query, each with its streams.

    Args:
        leaves: Streams of the first two joins.
        joined: S7 and S8, as the last join sees them; their factors and rates are bounds.
        keys: The keys of their rows in the first joins.
    """

    leaves: tuple[tuple[JoinSide, ...], tuple[JoinSide, ...]]
    joined: tuple[JoinSide, JoinSide]
    keys: tuple[KeyRows, KeyRows]


@dataclass(frozen=True, slots=True)
class PipelineOutcome:
    """What came out of the last join, for S7 and for S8.

    Args:
        least: Least ratio of the rows that the corrected model says to those that are needed.
        least_published: The same by the published model.
        least_marks: The same of the rows above the marks. They need not be the latest ones, so it can be below 1.
        excess: Mean ratio of the greatest predicted to the greatest needed number of rows in a second.
        excess_published: The same by the published model.
        excess_marks: The same of the rows above the marks.
        needed: Whether every row that a result needs lies above the mark.
    """

    least: tuple[float, float]
    least_published: tuple[float, float]
    least_marks: tuple[float, float]
    excess: tuple[float, float]
    excess_published: tuple[float, float]
    excess_marks: tuple[float, float]


def pipeline(run: PipelineRun) -> Pipeline:
    """Draws the streams, and joins them."""
    random = np.random.default_rng([run.query, run.seed])
    leaves, joined, keys = [], [], []
    for held_up in (True, False):
        factors = random.integers(0, run.factor + 1, 3)
        streams = [keyed_stream(random, SECONDS, int(k), bursts=HELD_UP if held_up else ()) for k in factors]
        sides = tuple(map(side_of, streams))
        output, rows = joined_stream(streams)
        model = joined_input([each.model for each in sides])
        keys.append(output.keys)
        if run.query == 3:
            output, model = _by_another(random, sides[0], output, rows, model, int(random.integers(0, run.dependent)))
        leaves.append(sides)
        joined.append(JoinSide(output, model))
    return Pipeline((leaves[0], leaves[1]), (joined[0], joined[1]), (keys[0], keys[1]))


def side_of(stream: KeyedStream) -> JoinSide:
    """A stream whose parameters are known."""
    known = JoinInput(scrambling_factor(stream.keys), 1.0 / MEAN_GAP, multiplicity(stream.keys))
    return JoinSide(stream, known)


def joined_stream(streams: Sequence[KeyedStream]) -> tuple[KeyedStream, KeyRows]:
    """What a join gives out: a row for each combination of rows with equal keys, when the last of them comes. And the
    row of the first stream that each was made of."""
    places: list[dict[int, list[int]]] = []
    for stream in streams:
        found: dict[int, list[int]] = {}
        for row, key in enumerate(stream.keys.tolist()):
            found.setdefault(key, []).append(row)
        places.append(found)
    keys, times, firsts = [], [], []
    for key in sorted(set.intersection(*map(set, places))):
        for rows in product(*(each[key] for each in places)):
            keys.append(key)
            times.append(max(float(stream.times[row]) for stream, row in zip(streams, rows, strict=True)))
            firsts.append(rows[0])
    order = np.argsort(np.array(times), kind="stable")
    return KeyedStream(np.array(keys)[order], np.array(times)[order]), np.array(firsts)[order]


def _by_another(
    random: np.random.Generator, first: JoinSide, output: KeyedStream, rows: KeyRows, model: JoinInput, dependent: int
) -> tuple[KeyedStream, JoinInput]:
    """A joined stream by another column of its first stream, and what is known of it (WU Th. 3.4.2, with the dependent
    scrambling factor of the joined stream, not of the first one)."""
    keys = first.stream.keys
    order = np.argsort(keys, kind="stable")
    places = np.arange(len(keys)) + random.random(len(keys)) * max(dependent - 2, 0)
    column = np.empty(len(keys), np.int64)
    column[order[np.argsort(places, kind="stable")]] = np.arange(len(keys)) // 2
    others = model.multiplicity / first.model.multiplicity
    bound = joined_dependent(dependent_scrambling(keys, column), others)
    known = JoinInput(other_factor(model.factor, bound), model.rate, model.multiplicity)
    return KeyedStream(column[rows], output.times), known


def last_join(run: PipelineRun) -> PipelineOutcome:
    """Looks at the last join of a query."""
    first, second = pipeline(run).joined
    found = (buffers(first, second), buffers(second, first))
    least, excess = ([[function(each, form) for each in found] for form in _FORMS] for function in (_least, _excess))
    pairs = [(float(some[0]), float(some[1])) for some in (*least, *excess)]
    return PipelineOutcome(*pairs)


_FORMS: Final = ("corrected", "published", "marks")


def _least(found: Buffers, form: str) -> float:
    return float((getattr(found, form) / found.needed).min(initial=np.inf))


def _excess(found: Buffers, form: str) -> float:
    seconds = found.times.astype(np.int64)
    said, needed = np.zeros(int(seconds.max(initial=0)) + 1), np.zeros(int(seconds.max(initial=0)) + 1)
    np.maximum.at(said, seconds, getattr(found, form))
    np.maximum.at(needed, seconds, found.needed)
    some = needed > 0
    return float(np.mean(said[some] / needed[some]))
