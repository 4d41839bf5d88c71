"""Random order: each element is polled once in a round, at a place that is drawn anew in each round."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.orders.series import age_series, freshness_series, gain_series, with_series

Floats = NDArray[np.float64]

_MOMENTS: Final = [(2.0 ** (k + 2) - 2.0) / ((k + 1) * (k + 2)) for k in range(9)]
"""Moments of 1 + U - V for two uniform numbers: the time between two polls, in rounds."""
_STALE: Final = freshness_series(_MOMENTS)
_GAIN: Final = gain_series(_MOMENTS)
_AGE: Final = age_series(_MOMENTS)
_STEPS: Final = 4


class RandomOrder:
    """F = (1 - a^2) / r with a = (1 - e^-r) / r (CGM00b §4).

    >>> RandomOrder().freshness(np.array([1.0]))
    array([0.60042...])
    """

    name: ClassVar[str] = "random"

    def freshness(self, r: Floats) -> Floats:
        a = _mean_survival(r)
        exact = np.divide(r - (1.0 - a) * (1.0 + a), r, out=np.zeros_like(r), where=r > 0.0)
        return 1.0 - with_series(r, exact, _STALE, 1)

    def gain(self, r: Floats) -> Floats:
        a = _mean_survival(r)
        return with_series(r, 1.0 - 3.0 * a * a + 2.0 * a * np.exp(-r), _GAIN, 2)

    def lack(self, r: Floats) -> Floats:
        a = _mean_survival(r)
        return a * (3.0 * a - 2.0 * np.exp(-r))

    def slope(self, r: Floats) -> Floats:
        a, e = _mean_survival(r), np.exp(-r)
        exact = np.divide((e - a) * (2.0 * e - 6.0 * a), r, out=np.zeros_like(r), where=r > 0.0) - 2.0 * a * e
        small = [(k + 2) * each for k, each in enumerate(_GAIN)]
        return with_series(r, exact, small, 1)

    def inverse(self, gain: Floats, lack: Floats) -> Floats:
        """No closed form: Newton on the odds of the gain, whose logarithm is nearly linear in that of r."""
        odds = gain / lack
        log_r = 0.5 * np.log(odds * (12.0 / 7.0 + 3.0 * odds) / (1.0 + odds))
        for _ in range(_STEPS):
            r = np.exp(log_r)
            own, rest = self.gain(r), self.lack(r)
            log_r -= np.log(own / rest / odds) * own * rest / (self.slope(r) * r)
        return np.exp(log_r)

    def age(self, r: Floats) -> Floats:
        exact = np.divide(7.0 / 12.0 * r - (1.0 - self.freshness(r)), r, out=np.zeros_like(r), where=r > 0.0)
        return with_series(r, exact, _AGE, 1)


def _mean_survival(r: Floats) -> Floats:
    return np.divide(-np.expm1(-r), r, out=np.ones_like(r), where=r > 0.0)
