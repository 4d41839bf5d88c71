"""Query 1 of WU §3.6: three streams in one join, of which one is held up for a while and another has a burst.

Every result is looked at when its last row comes: how many of the latest rows of each other stream the join must have
remembered for it, and how many the model says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.model import KeyOrder
from freshet.quality.disorder import Disorder, JoinInput, lag, published_rows, scrambling_factor
from freshet.reproduce.wojoin.streams import KeyedStream, keyed_stream

SECONDS: Final = 120.0
_BURSTS: Final = ((), ((10.0, 40.0, 1 / 8),), ((80.0, 90.0, 8.0),))
"""S2 comes at an eighth of its rate for 30 s, S3 at eight times its rate for 10 s (WU Fig. 3.7)."""
_RECENT: Final = 1.0
"""Seconds over which the published form measures rates."""
RowCounts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Query1Run:
    """What is run.

    Args:
        seed: Draws the streams and their scrambling factors, from 0 to ``factor``.
        factor: Greatest scrambling factor.
        measured: Whether the disorder is measured, not known.
    """

    seed: int
    factor: int = 500
    measured: bool = False


@dataclass(frozen=True, slots=True)
class Query1Outcome:
    """What came out.

    Args:
        accuracy: Share of the results that were found (WU Eq. 3.1).
        least_margin: Least ratio of the rows that the corrected model says to those that a result needs.
        least_published: The same by the published model.
        excess: Mean ratio of the greatest predicted to the greatest needed number of rows in a second.
        window_accuracy: Share of the results that windows find that hold as many rows as this join, on average.
        fifo_accuracy: The same, if this join held the latest rows that the model says, not those above the marks.
        window_size: How many times as many rows windows need for the same accuracy.
    """

    accuracy: float
    least_margin: float
    least_published: float
    excess: float
    window_accuracy: float
    fifo_accuracy: float
    window_size: float


def query_1(run: Query1Run) -> Query1Outcome:
    """Runs the join over three streams."""
    return _Query1(streams_of(run), run.measured).outcome()


def streams_of(run: Query1Run) -> list[KeyedStream]:
    """Draws the streams."""
    random = np.random.default_rng(run.seed)
    factors = random.integers(0, run.factor + 1, 3)
    return [keyed_stream(random, SECONDS, int(k), bursts=_BURSTS[at]) for at, k in enumerate(factors)]


class _Query1:
    def __init__(self, streams: list[KeyedStream], measured: bool) -> None:
        self._streams = streams
        self._factors = [scrambling_factor(stream.keys) for stream in streams]
        orders = [KeyOrder("k") if measured else KeyOrder("k", rows=factor) for factor in self._factors]
        self._past = [
            set(Disorder().judge(stream.keys, order).past.tolist())
            for stream, order in zip(streams, orders, strict=True)
        ]
        self._heights = [np.maximum.accumulate(stream.keys) for stream in streams]

    def outcome(self) -> Query1Outcome:
        places = [self._places(stream.keys) for stream in self._streams]
        common = set(places[0]) & set(places[1]) & set(places[2])
        found = total = 0
        depths, margins, published, seconds = [], [], [], []
        for key in sorted(common):
            for rows in product(*(each[key] for each in places)):
                total += 1
                times = [float(stream.times[row]) for stream, row in zip(self._streams, rows, strict=True)]
                last = int(np.argmax(times))
                depth = [self._came(at, times[last]) - row for at, row in enumerate(rows)]
                depths.append([each if at != last else 0 for at, each in enumerate(depth)])
                if any(row in past for row, past in zip(rows, self._past, strict=True)):
                    continue
                found += 1
                for at in {0, 1, 2} - {last}:
                    said = self._corrected(at, last, times[last], rows[last])
                    margins.append(said / depth[at])
                    seconds.append((at, int(times[last]), said, depth[at]))
                    if total % 7 == 0:
                        published.append(self._published(at, last, times[last], rows[last]) / depth[at])
        accuracy, needs = found / total, np.array(depths, float)
        window, size = _windows(needs, self._held(self._above), accuracy)
        fifo, _ = _windows(needs, self._held(self._corrected), accuracy)
        return Query1Outcome(accuracy, min(margins), min(published), _excess(seconds), window, fifo, size)

    def _places(self, keys: NDArray[np.int64]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for row, key in enumerate(keys.tolist()):
            found.setdefault(key, []).append(row)
        return found

    def _came(self, at: int, time: float) -> int:
        return int(np.searchsorted(self._streams[at].times, time, side="right"))

    def _mark(self, at: int, rows: int) -> int:
        """The key mark after so many rows; -1: none."""
        first = rows - self._factors[at]
        return int(self._heights[at][first - 1]) if first > 0 else -1

    def _corrected(self, own: int, other: int, time: float, row: int) -> int:
        """Rows of a stream to remember for another: all since its keys had first passed the other's mark."""
        passed = int(np.searchsorted(self._heights[own], self._mark(other, row) + 1))
        return max(1, self._came(own, time) - passed)

    def _published(self, own: int, other: int, time: float, row: int) -> float:
        """WU Eq. 3.7, with rates of the last second."""
        streams, came = self._streams, self._came(own, time)
        rates = [max(1, self._came(at, time) - self._came(at, time - _RECENT)) / _RECENT for at in (own, other)]
        # The row whose place the latest one takes if its stream is sorted.
        stands_for = int(np.count_nonzero(streams[other].keys < streams[other].keys[row]))
        then = float(streams[other].times[min(stands_for, len(streams[other].times) - 1)])
        lagged = lag(streams[own].keys, streams[other].keys, self._came(own, then), stands_for + 1)
        inputs = [JoinInput(self._factors[at], rate) for at, rate in zip((own, other), rates, strict=True)]
        return min(float(came), published_rows(inputs[0], inputs[1], lagged))

    def _above(self, own: int, other: int, time: float, row: int) -> int:
        """Rows of a stream above another's mark."""
        keys = self._streams[own].keys[: self._came(own, time)]
        return max(1, int(np.count_nonzero(keys > self._mark(other, row))))

    def _held(self, rows: Callable[[int, int, float, int], int]) -> RowCounts:
        """Mean number of rows that the join remembers of each stream, at whole seconds."""
        held = np.zeros(3)
        for second in range(1, int(SECONDS) + 1):
            for own in range(3):
                others = [at for at in range(3) if at != own]
                held[own] += max(rows(own, at, second, self._came(at, second)) for at in others) / SECONDS
        return held


def _windows(depths: RowCounts, held: RowCounts, accuracy: float) -> tuple[float, float]:
    """The share of results that windows of so many rows find; and how many times as large they must be."""
    needed = (depths / held).max(axis=1)
    return float((needed <= 1.0).mean()), float(np.quantile(needed, accuracy))


def _excess(seconds: list[tuple[int, int, int, int]]) -> float:
    most: dict[tuple[int, int], tuple[int, int]] = {}
    for at, second, said, needed in seconds:
        before = most.get((at, second), (0, 0))
        most[at, second] = max(before[0], said), max(before[1], needed)
    return float(np.mean([said / needed for said, needed in most.values()]))
