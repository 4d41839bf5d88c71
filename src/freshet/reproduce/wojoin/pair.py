"""Two streams in one join: what it must remember, and what the models say, row by row of either stream.

Works for the streams of sensors and for what joins give out, so that a plan of several joins is looked at join by join.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.quality.disorder import JoinInput
from freshet.reproduce.wojoin.streams import KeyedStream

KeyRows = NDArray[np.int64]
RealRows = NDArray[np.float64]
_RECENT: Final = 1.0
"""Seconds over which the published form measures rates."""


@dataclass(frozen=True)
class JoinSide:
    """A stream in a join.

    Args:
        stream: Its keys and times.
        model: What is known of it: the scrambling factor, which for the output of a join is a bound.
    """

    stream: KeyedStream
    model: JoinInput

    @cached_property
    def heights(self) -> KeyRows:
        """The greatest key of the rows so far, from no row on; -1: of none."""
        return np.concatenate([[-1], np.maximum.accumulate(self.stream.keys)])

    @cached_property
    def first(self) -> KeyRows:
        """For each key, the first row that has it; the number of rows: none does."""
        size = int(self.stream.keys.max(initial=0)) + 1
        found = np.full(size, len(self.stream.keys))
        np.minimum.at(found, self.stream.keys, np.arange(len(self.stream.keys)))
        return found

    @cached_property
    def ordered(self) -> KeyRows:
        """The sorted keys."""
        return np.sort(self.stream.keys)

    def came(self, times: RealRows) -> KeyRows:
        """Number of rows at some times."""
        return np.searchsorted(self.stream.times, times, side="right")

    def mark(self, rows: KeyRows) -> KeyRows:
        """The key mark after some numbers of rows."""
        return self.heights[np.maximum(0, rows - int(self.model.factor))]

    def passed(self, marks: KeyRows) -> KeyRows:
        """After how many rows the keys had first passed some marks."""
        return np.maximum(0, np.searchsorted(self.heights, marks + 1) - 1)

    def rate(self, times: RealRows) -> RealRows:
        """Rows per second, over the last one."""
        rows: RealRows = np.maximum(1, self.came(times) - self.came(times - _RECENT)) / _RECENT
        return rows


@dataclass(frozen=True, slots=True)
class Buffers:
    """Rows of one stream in a join, at the results that the other stream's rows complete.

    Args:
        times: When.
        needed: How many of the latest rows the results need.
        published: How many the published model says (WU Eq. 3.7).
        corrected: How many of the latest rows the corrected model says.
        marks: How many of the rows lie above the mark of the other stream.
    """

    times: RealRows
    needed: KeyRows
    published: RealRows
    corrected: KeyRows
    marks: KeyRows


def buffers(own: JoinSide, other: JoinSide, most: int = 4_000) -> Buffers:
    """What a join must remember of a stream, at no more than so many results of rows of the other one."""
    keys, times = other.stream.keys, other.stream.times
    inside = keys < len(own.first)
    rows = np.flatnonzero(inside)
    first = own.first[keys[rows]]
    came = own.came(times[rows])
    rows, first, came = (each[first < came] for each in (rows, first, came))
    step = max(1, len(rows) // most)
    rows, first, came = rows[::step], first[::step], came[::step]
    marks = other.mark(rows)
    corrected = np.maximum(1, came - own.passed(marks))
    return Buffers(times[rows], came - first, _published(own, other, rows, came), corrected, above(own, came, marks))


def above(own: JoinSide, came: KeyRows, marks: KeyRows) -> KeyRows:
    """How many of the first rows of a stream lie above some marks."""
    found = np.empty(len(came), np.int64)
    for place, (rows, mark) in enumerate(zip(came.tolist(), marks.tolist(), strict=True)):
        # Before its keys had passed the mark, none is above it.
        begin = int(own.passed(np.array([mark]))[0])
        found[place] = np.count_nonzero(own.stream.keys[begin:rows] > mark)
    return found


def _published(own: JoinSide, other: JoinSide, rows: KeyRows, came: KeyRows) -> RealRows:
    """WU Eq. 3.7: factors and rates as the models say, the lag when the row came whose place the latest one takes."""
    times = other.stream.times
    stands_for = np.minimum(np.searchsorted(other.ordered, other.stream.keys[rows]), len(times) - 1)
    then = times[stands_for]
    lag = own.came(then) - np.searchsorted(own.ordered, other.ordered[stands_for], side="right")
    rates = [np.maximum(side.rate(times[rows]), 1.0) for side in (own, other)]
    rows_said = own.model.factor + rates[0] * other.model.factor / rates[1] + lag
    said: RealRows = np.clip(rows_said, 1.0, np.maximum(came, 1))
    return said
