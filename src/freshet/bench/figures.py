"""From measurements to figures: medians, quartiles, ratios, slopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

Values = Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure and the range in which its repetitions lie."""

    middle: float
    low: float
    high: float

    @property
    def ends(self) -> tuple[float, float]:
        """Low and high end."""
        return self.low, self.high

    def times(self, factor: float) -> Spread:
        """The same figure in another unit.

        >>> Spread(0.02, 0.01, 0.03).times(1000)
        Spread(middle=20.0, low=10.0, high=30.0)
        """
        return Spread(self.middle * factor, self.low * factor, self.high * factor)


def quartiles(values: Values) -> Spread:
    """The median with the first and the third quartile, for many repetitions.

    >>> quartiles([1, 2, 3, 4, 100])
    Spread(middle=3.0, low=2.0, high=4.0)
    """
    low, middle, high = np.percentile(_some(values), [25, 50, 75])
    return Spread(float(middle), float(low), float(high))


def extremes(values: Values) -> Spread:
    """The median with the smallest and the greatest value, for few repetitions.

    >>> extremes([3, 1, 2])
    Spread(middle=2.0, low=1.0, high=3.0)
    """
    some = _some(values)
    return Spread(float(np.median(some)), float(some.min()), float(some.max()))


def ratio(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> Spread:
    """The ratio of two medians, from rounds in which both were measured one after the other.

    The middle is the ratio of the medians over all rounds. The ends are the smallest and the greatest ratio of the
    medians of one round, so that what slowed down a whole round does not show as a difference.

    >>> ratio([[1.0, 1.0], [2.0, 2.0]], [[4.0, 4.0], [5.0, 5.0]])
    Spread(middle=0.333..., low=0.25, high=0.4)
    """
    middle = float(np.median(np.concatenate(ours)) / np.median(np.concatenate(theirs)))
    rounds = [float(np.median(one) / np.median(other)) for one, other in zip(ours, theirs, strict=True)]
    return Spread(middle, min(*rounds, middle), max(*rounds, middle))


def mean(values: Sequence[float]) -> Spread:
    """The mean with the smallest and the greatest value, for repetitions that all count.

    >>> mean([1.0, 2.0, 6.0])
    Spread(middle=3.0, low=1.0, high=6.0)
    """
    return Spread(float(np.mean(values)), min(values), max(values))


def over(ours: Sequence[float], theirs: Sequence[float], *, paired: bool = True) -> Spread:
    """The ratio of two means, with the smallest and the greatest ratio of a repetition.

    Args:
        ours: The numerators, by repetition.
        theirs: The denominators, by repetition.
        paired: Whether both were measured in the same repetitions; otherwise any two are compared.

    >>> over([1.0, 2.0], [2.0, 2.0])
    Spread(middle=0.75, low=0.5, high=1.0)
    >>> over([4.0, 8.0], [1.0, 2.0], paired=False)
    Spread(middle=4.0, low=2.0, high=8.0)
    """
    pairs = zip(ours, theirs, strict=True) if paired else product(ours, theirs)
    ratios = [one / other for one, other in pairs]
    return Spread(float(np.mean(ours) / np.mean(theirs)), min(ratios), max(ratios))


def same_order(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """The share of the pairs of names that come in the same order by both values; 1: both put all in one order.

    >>> same_order({"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 0.1, "b": 0.3, "c": 0.2})
    0.666...
    """
    pairs = list(combinations(one, 2))
    return sum((one[a] < one[b]) == (other[a] < other[b]) for a, b in pairs) / len(pairs)


def slope(times: Values, values: Values) -> Spread:
    """The slope of the least-squares line, with a band of two standard errors from the residuals.

    Samples of a process's memory depend on the ones before. So the error counts only as many samples as would be
    independent, n (1 - r) / (1 + r), where r is the correlation of neighbouring residuals.

    >>> slope([0, 1, 2, 3, 4], [1, 3, 5, 7, 9])
    Spread(middle=2.0, low=2.0, high=2.0)
    """
    x, y = _some(times), _some(values)
    if len(x) < 3 or np.ptp(x) == 0.0:
        raise ValueError("a slope needs three samples at different times")
    centred = x - x.mean()
    steep = float(centred @ (y - y.mean()) / (centred @ centred))
    rest = y - y.mean() - steep * centred
    around = float(rest @ rest)
    if around <= 1e-18 * float(y @ y):
        return Spread(steep, steep, steep)
    leaning = min(max(float(rest[1:] @ rest[:-1]) / around, 0.0), 0.99)
    repeated = (1 + leaning) / (1 - leaning)
    error = float(np.sqrt(around / (len(x) - 2) / (centred @ centred) * repeated))
    return Spread(steep, steep - 2 * error, steep + 2 * error)


def _some(values: Values) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if not len(array):
        raise ValueError("nothing was measured")
    return array
