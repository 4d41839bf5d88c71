"""Planning again after some elements have changed."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements
from freshet.mirror.orders import ORDERS, OrderName
from freshet.mirror.plan import RefreshPlan
from freshet.mirror.search import SearchStart, inverse_prices

Floats = NDArray[np.float64]

_SOME: Final = 0.1
"""Share of changed elements from which on the first pass of a search tells the spending as cheaply."""


def start_after(before: RefreshPlan, elements: Elements, least: Floats | None = None) -> SearchStart:
    """Where to begin the search for a plan that follows another one (CAR §6.2.4).

    It begins at the mu of the plan before. If few elements have changed since, what would be spent there follows from
    these alone, which saves a pass over all elements.

    Args:
        before: The plan before.
        elements: The elements of now; those of before have the same numbers.
        least: Least frequency of each element now, or None.

    >>> from freshet.mirror.plan import plan
    >>> before = plan(Elements.of([1, 2, 3, 4, 5]), 5.0)
    >>> changed = Elements.of([1, 2, 3, 4, 2])
    >>> plan(changed, 5.0, start=start_after(before, changed)).frequencies.round(2)
    array([1.04, 1.19, 1.12, 0.46, 1.19])
    """
    return SearchStart(before.mu, before.slope, _spent(before, elements, least))


def _spent(before: RefreshPlan, elements: Elements, least: Floats | None) -> float | None:
    """What is spent at the mu of before, floors included; None if too much has changed.

    Elements whose floor alone has changed count as they were: the search needs no more than an estimate.
    """
    old = before.elements
    if len(old) != len(elements):
        return None
    rows = np.flatnonzero((old.rates != elements.rates) | (old.worth != elements.worth) | (old.sizes != elements.sizes))
    if len(rows) > _SOME * len(elements):
        return None
    new = Elements(elements.rates[rows], elements.worth[rows], elements.sizes[rows])
    now = frequencies_at(new, before.mu, before.order)
    if least is not None:
        now = np.maximum(now, least[rows])
    then = float(old.sizes[rows] @ before.frequencies[rows])
    return before.spent - then + float(new.sizes @ now)


def frequencies_at(elements: Elements, mu: float, order: OrderName = "fixed") -> Floats:
    """The frequencies of elements in a plan with this mu (CAR Eq. 2.6).

    >>> frequencies_at(Elements.of([1.2, 1.2], [1.0, 2.0]), mu=1.0).round(3)
    array([0.   , 0.593])
    """
    frequencies = np.zeros(len(elements))
    gains = mu * inverse_prices(elements.rates * elements.sizes, elements.worth)
    polled = gains < 1.0
    r = ORDERS[order].inverse(gains[polled], 1.0 - gains[polled])
    frequencies[polled] = elements.rates[polled] / r
    return frequencies
