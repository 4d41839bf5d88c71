"""What the orders of polling share: freshness and age from the moments of the time between two polls.

Let I be the time between two polls in units of its mean T, r = lambda T, and m_k the k-th moment of I. Freshness is
E[1 - e^(-rI)] / r, and the expected age is T (m_2 / 2 - (1 - F) / r) (CGM00b §4, CAR §2.7). For small r both cancel,
so their power series take over there.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SMALL: Final = 0.02
"""Below this r, six terms of a series are exact to 1e-13 and the closed forms are not."""
_TERMS: Final = 6


def freshness_series(moments: Sequence[float]) -> list[float]:
    """Coefficients of 1 - F by powers of r, from r^1 on.

    >>> [round(each, 4) for each in freshness_series([1.0] * 9)[:2]]
    [0.5, -0.1667]
    """
    return [(-1) ** (k + 1) * moments[k + 1] / factorial(k + 1) for k in range(1, _TERMS + 1)]


def gain_series(moments: Sequence[float]) -> list[float]:
    """Coefficients of the gain g = -r^2 dF/dr by powers of r, from r^2 on."""
    return [(-1) ** (k + 1) * k * moments[k + 1] / factorial(k + 1) for k in range(1, _TERMS + 1)]


def age_series(moments: Sequence[float]) -> list[float]:
    """Coefficients of the expected age over the time between polls, by powers of r, from r^1 on."""
    return [(-1) ** (k + 1) * moments[k + 2] / factorial(k + 2) for k in range(1, _TERMS + 1)]


def evaluate(coefficients: Sequence[float], r: Floats) -> Floats:
    """The series at r, without its leading power: Horner's rule.

    >>> evaluate([1.0, 2.0], np.array([10.0]))
    array([21.])
    """
    total = np.full_like(r, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * r + coefficient
    return total


def with_series(r: Floats, exact: Floats, coefficients: Sequence[float], power: int) -> Floats:
    """Replaces the values at small r by those of the series."""
    small = r < SMALL
    if small.any():
        exact[small] = evaluate(coefficients, r[small]) * r[small] ** power
    return exact
