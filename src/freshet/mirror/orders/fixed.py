"""Fixed order: an element is polled at equal intervals."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.orders.lambert import inverse_log_excess
from freshet.mirror.orders.series import age_series, gain_series, with_series

Floats = NDArray[np.float64]

_MOMENTS: Final = (1.0,) * 9
_GAIN: Final = gain_series(_MOMENTS)
_AGE: Final = age_series(_MOMENTS)
_LOGARITHM: Final = 0.1
"""Below this gain, the logarithm of the lack would lose digits that log1p of the gain keeps."""


class FixedOrder:
    """F = (1 - e^-r) / r, the best order of all (CGM00b §4, CAR §2.7).

    >>> FixedOrder().freshness(np.array([1.0]))
    array([0.63212056])
    """

    name: ClassVar[str] = "fixed"

    def freshness(self, r: Floats) -> Floats:
        return np.divide(-np.expm1(-r), r, out=np.ones_like(r), where=r > 0.0)

    def gain(self, r: Floats) -> Floats:
        return with_series(r, 1.0 - (1.0 + r) * np.exp(-r), _GAIN, 2)

    def lack(self, r: Floats) -> Floats:
        return (1.0 + r) * np.exp(-r)

    def slope(self, r: Floats) -> Floats:
        return r * np.exp(-r)

    def inverse(self, gain: Floats, lack: Floats) -> Floats:
        """By Lambert's W: (1 + r) e^-r = lack."""
        excess = -np.log(lack)
        low = gain < _LOGARITHM
        if low.any():
            excess[low] = -np.log1p(-gain[low])
        return inverse_log_excess(excess)

    def age(self, r: Floats) -> Floats:
        exact = np.divide(0.5 * r - (1.0 - self.freshness(r)), r, out=np.zeros_like(r), where=r > 0.0)
        return with_series(r, exact, _AGE, 1)
