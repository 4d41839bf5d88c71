"""Response time over output tuples (FAS §5.1, Def. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freshet.quality.histogram import Histogram
from freshet.quality.recent import ResponseCounts
from freshet.quality.snapshots import ResponseSnapshot

_PENDING_TRAINS = 32
_PENDING_ARRAYS = 128
_PENDING_ROWS = 4096


@dataclass(frozen=True, slots=True)
class ResponseTimes:
    """What a :class:`ResponseMeter` has seen, in seconds; None if there was no tuple."""

    count: int
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None

    def snapshot(self, recent: ResponseCounts) -> ResponseSnapshot:
        """The times as plain values, for reports, with what was seen recently."""
        return {
            "count": self.count,
            "mean_s": self.mean,
            "p50_s": self.p50,
            "p95_s": self.p95,
            "p99_s": self.p99,
            "max_s": self.max,
            "recent_mean_s": recent.mean,
            "recent_p95_s": recent.p95,
        }


class ResponseMeter:
    """Departure minus arrival over the output tuples; tuples that are filtered out do not count (FAS Def. 1).

    Memory is bounded: quantiles come from a :class:`~freshet.quality.histogram.Histogram` with a relative error of
    1 %. A train is given by the arrivals at evenly spaced ranks of its matching tuples. With a rank for
    each tuple, everything is exact up to the histogram's error. With fewer (m ranks for n tuples), arrivals
    between two ranks count as evenly spread for the mean (the trapezoid rule over ranks), and the quantiles are off by
    at most n / 2(m - 1) tuples of this train. The maximum is still exact, because the earliest arrival is a rank.

    >>> meter = ResponseMeter()
    >>> meter.add_train(rows=3, departure=10.0, arrivals=(7.0, 8.0, 9.0))
    >>> times = meter.times()
    >>> times.count, times.mean, round(times.p50, 1), times.max
    (3, 2.0, 2.0, 3.0)
    """

    __slots__ = ("_arrays", "_arrivals", "_histogram", "_pending_rows", "_ranks", "_sum", "_trains", "count")

    def __init__(self) -> None:
        self.count = 0
        self._sum = 0.0
        self._histogram: Histogram | None = None
        # Observations wait here, so that NumPy's price per call is paid once for many trains.
        self._trains: list[tuple[float, int]] = []
        self._ranks: list[int] = []
        self._arrivals: list[float] = []
        self._arrays: list[NDArray[np.float64]] = []
        self._pending_rows = 0

    def add_train(self, rows: int, departure: float, arrivals: Sequence[float]) -> None:
        """Records a train that departed; ``arrivals`` are at evenly spaced ranks of its output, earliest first."""
        if rows <= 0:
            return
        if len(arrivals) == 0:
            raise ValueError(f"{rows} output tuples without an arrival time")
        self.count += rows
        self._trains.append((departure, rows))
        self._ranks.append(len(arrivals))
        self._arrivals.extend(arrivals)
        if len(self._trains) >= _PENDING_TRAINS:
            self._take_in_trains()

    def add_many(self, response_times: ArrayLike) -> None:
        """Records tuples that departed with these response times; mean and maximum are exact.

        >>> meter = ResponseMeter()
        >>> meter.add_many(np.array([1.0, 3.0]))
        >>> meter.times().mean
        2.0
        """
        times = np.array(response_times, dtype=np.float64)
        self.count += len(times)
        self._arrays.append(times)
        self._pending_rows += len(times)
        if self._pending_rows >= _PENDING_ROWS or len(self._arrays) >= _PENDING_ARRAYS:
            self._take_in_arrays()

    def merge(self, other: ResponseMeter) -> None:
        """Adds everything that the other meter has seen."""
        if not other.count:
            return
        self._take_in()
        histogram = other._take_in()
        self.count += other.count
        self._sum += other._sum
        self._histogram = self._histogram or Histogram()
        self._histogram.merge(histogram)

    def seen(self) -> ResponseCounts:
        """What it has seen so far, in a form that is quick to compare with a later look."""
        if not self.count:
            return ResponseCounts.nothing()
        counts = self._take_in().counts
        buckets = np.flatnonzero(counts)
        return ResponseCounts(self.count, self._sum, buckets, counts[buckets])

    def times(self) -> ResponseTimes:
        """Count, mean, quantiles and maximum so far."""
        if not self.count:
            return ResponseTimes(0)
        histogram = self._take_in()
        p50, p95, p99 = histogram.quantiles((0.5, 0.95, 0.99))
        return ResponseTimes(self.count, self._sum / self.count, p50, p95, p99, histogram.maximum)

    def _take_in(self) -> Histogram:
        self._take_in_trains()
        self._take_in_arrays()
        self._histogram = self._histogram or Histogram()
        return self._histogram

    def _take_in_arrays(self) -> None:
        if self._arrays:
            times = np.concatenate(self._arrays)
            self._arrays.clear()
            self._pending_rows = 0
            self._observe(times, None)

    def _take_in_trains(self) -> None:
        if not self._trains:
            return
        ranks = np.array(self._ranks)
        departures, rows = np.array(self._trains).T
        times = np.repeat(departures, ranks) - np.array(self._arrivals)
        self._trains.clear()
        self._ranks.clear()
        self._arrivals.clear()
        self._observe(times, _weights(rows, ranks))

    def _observe(self, times: NDArray[np.float64], weights: NDArray[np.float64] | None) -> None:
        # A source's clock may be ahead of ours: nothing is answered before it came.
        np.maximum(times, 0.0, out=times)
        self._sum += float(times.sum() if weights is None else times @ weights)
        self._histogram = self._histogram or Histogram()
        self._histogram.add(times, weights)


def _weights(rows: NDArray[np.float64], ranks: NDArray[np.intp]) -> NDArray[np.float64]:
    """How many tuples each rank stands for. The sum of f over 0..n-1, with f linear between ranks that are h apart,
    gives h for an inner rank and (h + 1) / 2 for an outer one. That is 1 for all if every tuple has a rank."""
    spacing = (rows - 1.0) / np.maximum(ranks - 1, 1)
    weights = np.repeat(spacing, ranks)
    ends = np.cumsum(ranks)
    outer = np.where(ranks > 1, (spacing + 1.0) / 2.0, rows)
    weights[ends - ranks] = outer
    weights[ends - 1] = outer
    return weights
