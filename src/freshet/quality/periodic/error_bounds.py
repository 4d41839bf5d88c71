"""How far an answer from some of the tuples may be from the answer from all of them.

A tuple is kept or not by a hash of its own, so what is kept is a Bernoulli sample. An estimate has a bound of z
standard deviations: with 0.95, the true value lies within it in 95 of 100 cases (D. G. Horvitz and D. J. Thompson, "A
generalization of sampling without replacement from a finite universe", 1952).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

from freshet.model.promises.keep import check_ratio


class Estimate(NamedTuple):
    """A value with its bound: the true value lies within ``value - bound`` and ``value + bound``, most of the time."""

    value: float
    bound: float


def count_estimate(count: int, kept: float, confidence: float = 0.95) -> Estimate:
    """The number of tuples that there were.

    Args:
        count: Number of tuples kept.
        kept: Share that was to be kept.
        confidence: Share of the cases in which the bound holds.

    >>> count_estimate(250, 0.25).value, round(count_estimate(250, 0.25).bound, 1)
    (1000.0, 107.4)
    >>> count_estimate(250, 1.0)
    Estimate(value=250.0, bound=0.0)
    """
    return sum_estimate(count, count, kept, confidence)


def sum_estimate(total: float, squares: float, kept: float, confidence: float = 0.95) -> Estimate:
    """The sum over all tuples.

    Args:
        total: Sum over the tuples kept.
        squares: Sum of their squares.
        kept: Share that was to be kept.
        confidence: Share of the cases in which the bound holds.

    >>> sum_estimate(500.0, 2000.0, 0.5)
    Estimate(value=1000.0, bound=123.9...)
    """
    check_ratio(kept)
    return Estimate(total / kept, _z(confidence) * math.sqrt((1.0 - kept) * squares) / kept)


def avg_estimate(count: int, total: float, squares: float, kept: float, confidence: float = 0.95) -> Estimate:
    """The average of all tuples: that of the tuples kept, as it is.

    Args:
        count: Number of tuples kept.
        total: Sum over them.
        squares: Sum of their squares.
        kept: Share that was to be kept.
        confidence: Share of the cases in which the bound holds.

    >>> avg_estimate(100, 500.0, 2900.0, 0.5)
    Estimate(value=5.0, bound=0.278...)
    """
    check_ratio(kept)
    if count == 0:
        return Estimate(math.nan, math.inf)
    mean = total / count
    variance = max(0.0, squares - count * mean * mean) / max(1, count - 1)
    return Estimate(mean, _z(confidence) * math.sqrt((1.0 - kept) * variance / count))


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf((1.0 + confidence) / 2.0)
