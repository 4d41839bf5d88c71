"""Quantiles of durations in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SHORTEST = 1e-6
"""Durations below it (seconds) share one bucket: the log's times have no finer resolution."""
LONGEST = 1e9
"""Durations above it (seconds) share the last bucket."""


class Histogram:
    """Weighted histogram of durations, with buckets that grow geometrically.

    A quantile has a relative error of at most ``relative_error`` for durations from 1 us to 1e9 s, and an absolute
    error of 1 us below. It is deterministic: the same observations give the same counts in any order. Histograms of
    the same error add up (the bucketing of DDSketch, Masson et al., VLDB 2019).

    >>> histogram = Histogram()
    >>> histogram.add(np.array([0.1, 0.2, 0.3, 4.0]))
    >>> [round(value, 2) for value in histogram.quantiles([0.5, 0.99])]
    [0.2, 4.0]
    """

    __slots__ = ("_log_growth", "counts", "maximum", "minimum", "relative_error")

    def __init__(self, relative_error: float = 0.01) -> None:
        if not 0.0 < relative_error < 1.0:
            raise ValueError(f"relative error {relative_error} is outside (0, 1)")
        self.relative_error = relative_error
        # Bucket i holds (g^(i-1), g^i] x SHORTEST; one value inside is within the error of all of it.
        self._log_growth = math.log((1.0 + relative_error) / (1.0 - relative_error))
        buckets = math.ceil(math.log(LONGEST / SHORTEST) / self._log_growth) + 1
        self.counts: NDArray[np.float64] = np.zeros(buckets)
        self.minimum = math.inf
        self.maximum = -math.inf

    def add(self, values: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> None:
        """Adds durations, each counted once or by its weight."""
        if not len(values):
            return
        last = len(self.counts) - 1
        scaled = np.log(np.maximum(values, SHORTEST) / SHORTEST) / self._log_growth
        buckets = np.minimum(np.ceil(scaled), last).astype(np.intp)
        self.counts += np.bincount(buckets, weights, minlength=last + 1)
        self.minimum = min(self.minimum, float(values.min()))
        self.maximum = max(self.maximum, float(values.max()))

    def merge(self, other: Histogram) -> None:
        """Adds everything that the other histogram has seen; both must have the same relative error."""
        if other.relative_error != self.relative_error:
            raise ValueError("histograms of different relative errors do not add up")
        self.counts += other.counts
        self.minimum = min(self.minimum, other.minimum)
        self.maximum = max(self.maximum, other.maximum)

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """For each share, the smallest duration that at least this share of the weight does not exceed.

        Raises:
            ValueError: Nothing has been added.
        """
        reached = np.cumsum(self.counts)
        if not reached[-1]:
            raise ValueError("an empty histogram has no quantiles")
        buckets = np.searchsorted(reached, np.asarray(shares) * reached[-1])
        return [min(max(self.value(int(bucket)), self.minimum), self.maximum) for bucket in buckets]

    def value(self, bucket: int) -> float:
        """The duration that a bucket stands for."""
        # Twice the upper bound over (g + 1) has the same ratio to both bounds of the bucket.
        middle = 2.0 / (math.exp(self._log_growth) + 1.0)
        return SHORTEST * middle * math.exp(bucket * self._log_growth) if bucket > 0 else 0.0
