"""Planning again after some elements have changed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements, check_budget
from freshet.mirror.orders import ORDERS, OrderName
from freshet.mirror.plan import RefreshPlan
from freshet.mirror.search import Candidates, SearchStart, inverse_prices, search

Floats = NDArray[np.float64]


class RefreshPlanner:
    """Makes optimal plans for elements of which some change now and then (CAR §6.2.4).

    Later searches begin at the mu of the plan before. What would be spent there follows from the rows that changed, so
    the first pass over all elements is not needed.

    Args:
        elements: The elements at first; they are copied.
        budget: What polls may cost per second.
        order: How the polls of an element lie in time.

    >>> planner = RefreshPlanner(Elements.of([1, 2, 3, 4, 5]), 5.0)
    >>> planner.plan().frequencies.round(2)
    array([1.15, 1.36, 1.35, 1.14, 0.  ])
    >>> planner.change(np.array([4]), rates=np.array([2.0]))
    >>> planner.plan().frequencies.round(2)
    array([1.04, 1.19, 1.12, 0.46, 1.19])
    """

    def __init__(self, elements: Elements, budget: float, *, order: OrderName = "fixed") -> None:
        elements.check()
        self._elements = Elements(elements.rates.copy(), elements.worth.copy(), elements.sizes.copy())
        self._budget, self._order = check_budget(budget), order
        self._some = Candidates.of(self._elements, None)
        self._start: SearchStart | None = None

    def change(self, rows: NDArray[np.intp], *, rates: Floats | None = None, worth: Floats | None = None) -> None:
        """These elements have new rates, or a new worth.

        Plans that were made before share these arrays: read their freshness before.
        """
        before = self._rows(rows)
        new = Elements(before.rates if rates is None else rates, before.worth if worth is None else worth, before.sizes)
        new.check()
        self._elements.rates[rows], self._elements.worth[rows] = new.rates, new.worth
        if self._start is not None and self._start.spent is not None:
            then, now = (frequencies_at(each, self._start.mu, self._order) for each in (before, new))
            self._start = self._start._replace(spent=self._start.spent + float(new.sizes @ (now - then)))
        self._renew(rows, new)

    def plan(self) -> RefreshPlan:
        """The optimal plan for the elements as they are now."""
        if self._some.price == 0.0:
            return RefreshPlan(self._elements, np.zeros(len(self._elements)), 0.0, self._order)
        found = search(self._some, self._budget, ORDERS[self._order], self._start)
        self._start = SearchStart(found.mu, self._budget, found.slope)
        return RefreshPlan(self._elements, found.frequencies, found.mu, self._order, found.evaluations)

    def _rows(self, rows: NDArray[np.intp]) -> Elements:
        return Elements(self._elements.rates[rows], self._elements.worth[rows], self._elements.sizes[rows])

    def _renew(self, rows: NDArray[np.intp], new: Elements) -> None:
        """Changes the candidates in place, or makes them anew if another element deserves polls most."""
        some, cost = self._some, new.rates * new.sizes
        inverse = inverse_prices(cost, new.worth)
        if some.price == 0.0 or (inverse * some.price < 1.0).any() or (some.demerit[rows] == 1.0).any():
            self._some = Candidates.of(self._elements, None)
        else:
            some.demerit[rows], some.cost[rows] = inverse * some.price, cost


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
