"""The equation of all estimates: what was seen, with a prior, gives a change rate."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS: Final = 60
_CLOSE: Final = 1e-12


def solve_rates(exact: Floats, quiet: Floats, changed: Floats, gap: Floats) -> Floats:
    """The rate at which the likelihood of what was seen is greatest (CGM00a §4.2, for unequal intervals).

    With ``changed`` polls that found a change after ``gap`` seconds each, ``exact`` changes whose time is known, and
    ``quiet`` seconds without a change, the equation is: quiet = exact / rate + sum of changed gap / (e^(rate gap) - 1).
    Times the rate, its left side less its right side is concave and rises, so Newton's method from the left closes in
    without overshooting.

    Args:
        exact: Changes of known time, of each element.
        quiet: Time without a change.
        changed: Polls that found a change, a row for each length of interval.
        gap: These lengths, a row for each.

    >>> solve_rates(np.array([0.0]), np.array([3.0]), np.array([[2.0]]), np.array([[1.0]])) - np.log(5 / 3)
    array([0.])
    >>> solve_rates(np.array([0.0]), np.array([3.0]), np.array([[1.0], [1.0]]), np.array([[1.0], [900.0]])).round(3)
    array([0.288])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where(quiet > 0.0, exact / quiet, np.inf)
    todo = np.flatnonzero(((changed > 0.0) & (gap > 0.0)).any(axis=0) & (quiet > 0.0))
    exact, quiet, changed, gap = exact[todo], quiet[todo], changed[:, todo], gap[:, todo]
    rate = exact / quiet
    for _ in range(_STEPS):
        share, steep = _bernoulli(rate * gap)
        step = (exact + (changed * share).sum(axis=0) - quiet * rate) / (quiet + (changed * gap * steep).sum(axis=0))
        rate = rate + step
        far = np.abs(step) > _CLOSE * rate
        if 2 * np.count_nonzero(far) <= len(far):  # most are found: go on with the others
            rates[todo] = rate
            exact, quiet, rate, todo, changed, gap = (
                exact[far], quiet[far], rate[far], todo[far], changed[:, far], gap[:, far])  # fmt: skip
        if not len(todo):
            break
    rates[todo] = rate
    return rates


def information(rates: Floats, exact: Floats, changed: Floats, gap: Floats) -> Floats:
    """How firm the estimate of each rate is: minus the second derivative of the likelihood's logarithm.

    >>> information(np.array([0.5]), np.array([2.0]), np.array([[0.0]]), np.array([[0.0]]))
    array([8.])
    """
    z = np.clip(rates * gap, 1e-9, 700.0)
    return np.asarray(exact / rates**2 + (changed * (gap / (2.0 * np.sinh(0.5 * z))) ** 2).sum(axis=0))


def _bernoulli(z: Floats) -> tuple[Floats, Floats]:
    """The values of z / (e^z - 1) and of minus its derivative."""
    small = z < 1e-4
    safe = np.where(small, 1.0, np.minimum(z, 300.0))
    grown = np.expm1(safe)
    value = np.where(small, 1.0 - 0.5 * z, safe / grown)
    steep = np.where(small, 0.5 - z / 6.0, ((safe - 1.0) * grown + safe) / (grown * grown))
    return value, steep
