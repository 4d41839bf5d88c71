"""How fresh elements are if they are polled at given rates."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements
from freshet.mirror.orders import ORDERS, OrderName

Floats = NDArray[np.float64]

_CHUNK: Final = 1 << 14
"""Elements that are evaluated at once: their arrays stay in the cache of the processor."""
_LARGEST: Final = 1e300


def freshness_of(elements: Elements, frequencies: Floats, order: OrderName = "fixed") -> Floats:
    """Time-averaged freshness of each element (CAR §2.7); 1 where nothing changes, 0 where nobody polls.

    >>> freshness_of(Elements.of([1.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0]))
    array([0.63212056, 1.        , 0.        ])
    """
    fresh = np.empty(len(elements))
    for begin in range(0, len(fresh), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        rates = elements.rates[part]
        with np.errstate(divide="ignore", invalid="ignore"):
            r = np.where(rates > 0.0, rates / frequencies[part], 0.0)
        # An infinite r, where nobody polls, would be no number in some of the formulas.
        fresh[part] = np.where(np.isfinite(r), ORDERS[order].freshness(np.minimum(r, _LARGEST)), 0.0)
    return fresh


def ages_of(elements: Elements, frequencies: Floats, order: OrderName = "fixed") -> Floats:
    """Expected age of each element in seconds: how long its oldest unseen change has waited (CGM00b §3).

    >>> ages_of(Elements.of([1.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])).round(4)
    array([0.1321, 0.    ,    inf])
    """
    ages = np.where(elements.rates > 0.0, np.inf, 0.0)
    both = (elements.rates > 0.0) & (frequencies > 0.0)
    polled = frequencies[both]
    ages[both] = ORDERS[order].age(elements.rates[both] / polled) / polled
    return ages


def perceived_freshness(elements: Elements, frequencies: Floats, order: OrderName = "fixed") -> float:
    """Share of accesses that see a fresh element (CAR §2.2, Definition 4 and §2.6).

    >>> perceived_freshness(Elements.of([1.0, 0.0], [3.0, 1.0]), np.array([1.0, 0.0]))
    0.724...
    """
    return weighted_mean(freshness_of(elements, frequencies, order), elements.worth)


def weighted_mean(values: Floats, weights: Floats) -> float:
    """The mean by weight; rows without weight do not count, whatever their value. 1 if no row has weight.

    >>> weighted_mean(np.array([1.0, np.inf]), np.array([2.0, 0.0]))
    1.0
    """
    total = float(weights.sum())
    if total == 0.0:
        return 1.0
    with np.errstate(invalid="ignore"):
        mean = float(weights @ values) / total
    if np.isfinite(mean):
        return mean
    heavy = weights > 0.0
    return float(weights[heavy] @ values[heavy]) / total
