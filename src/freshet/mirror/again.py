"""Planning again after a few elements have changed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements
from freshet.mirror.orders import ORDERS, OrderName
from freshet.mirror.plan import RefreshPlan, plan

Floats = NDArray[np.float64]


def plan_again(
    elements: Elements, budget: float, before: RefreshPlan, rows: NDArray[np.intp], *, order: OrderName = "fixed"
) -> RefreshPlan:
    """The optimal plan for elements of which only some rows differ from those of an earlier plan (CAR §6.2.4).

    The search begins at the mu of the earlier plan. What would be spent there follows from the rows that differ, so
    the first pass over all elements is not needed.

    Args:
        elements: All elements, as they are now.
        budget: What polls may cost per second.
        before: The earlier plan, without floors.
        rows: The elements that differ.
        order: How the polls of an element lie in time.

    >>> before = plan(Elements.of([1, 2, 3, 4, 5]), 5.0)
    >>> now = Elements.of([1, 2, 3, 4, 2])
    >>> plan_again(now, 5.0, before, np.array([4])).frequencies.round(2)
    array([1.04, 1.19, 1.12, 0.46, 1.19])
    """
    if before.mu == 0.0:
        return plan(elements, budget, order=order)
    some = Elements(elements.rates[rows], elements.worth[rows], elements.sizes[rows])
    some.check()
    difference = frequencies_at(some, before.mu, order) - before.frequencies[rows]
    spent = before.spent + float(some.sizes @ difference)
    return plan(elements, budget, order=order, start=before.mu, spent=spent)


def frequencies_at(elements: Elements, mu: float, order: OrderName = "fixed") -> Floats:
    """The frequencies of elements in a plan with this mu (CAR Eq. 2.6).

    >>> frequencies_at(Elements.of([1.2, 1.2], [1.0, 2.0]), mu=1.0).round(3)
    array([0.   , 0.593])
    """
    frequencies = np.zeros(len(elements))
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = mu * elements.rates * elements.sizes / elements.worth
    polled = (gains > 0.0) & (gains < 1.0)
    r = ORDERS[order].inverse(gains[polled], 1.0 - gains[polled])
    frequencies[polled] = elements.rates[polled] / r
    return frequencies
