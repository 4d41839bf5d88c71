"""The plan: how often to poll each element, so that accesses see as much fresh data as the budget allows."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements, check_budget
from freshet.mirror.measures import freshness_of, weighted_mean
from freshet.mirror.orders import ORDERS, OrderName
from freshet.mirror.search import Candidates, SearchStart, search
from freshet.model import UserError

Floats = NDArray[np.float64]

_ROUNDING: Final = 1e-12
"""Floors may exceed the budget by this share: sums of floats are not exact."""


class RefreshPlan:
    """How often to poll each element, and what that achieves.

    Args:
        elements: What the plan is for; the arrays must not be changed.
        frequencies: Polls per second of each element.
        mu: What one more unit of budget per second would add to the sum of worth times freshness; 0 if nothing can be
            gained.
        order: How the polls of an element lie in time.
        slope: How fast the spending falls where the search ended, if it is known; a search that begins there needs it.
        evaluations: Number of passes over all elements that the search for mu needed.
    """

    def __init__(
        self,
        elements: Elements,
        frequencies: Floats,
        mu: float,
        order: OrderName,
        *,
        slope: float | None = None,
        evaluations: int = 0,
    ) -> None:
        self.elements = elements
        self.frequencies = frequencies
        self.mu = mu
        self.order = order
        self.slope = slope
        self.evaluations = evaluations

    @cached_property
    def freshness(self) -> Floats:
        """Freshness of each element."""
        return freshness_of(self.elements, self.frequencies, self.order)

    @cached_property
    def perceived(self) -> float:
        """Perceived freshness: the share of accesses that see a fresh element."""
        return weighted_mean(self.freshness, self.elements.worth)

    @cached_property
    def general(self) -> float:
        """General freshness: the share of elements that are fresh."""
        return float(self.freshness.mean()) if len(self.elements) else 1.0

    @cached_property
    def spent(self) -> float:
        """Budget in use; less than the budget only if no element is worth polling."""
        return float((self.elements.sizes * self.frequencies).sum())


def plan(
    elements: Elements,
    budget: float,
    *,
    order: OrderName = "fixed",
    least: Floats | None = None,
    start: SearchStart | None = None,
) -> RefreshPlan:
    """The rates f >= 0 that maximise the sum of p F(lambda / f) under the sum of s f = budget (CAR Eq. 2.1-2.4).

    All elements that are polled gain alike from one more unit of budget: p g(r) / (lambda s) = mu. This gives r for
    each element (by Lambert's W in fixed order), so that only mu needs a search. Its time is linear in the number of
    elements. Elements whose p / (lambda s) is below mu are not polled at all. The objective is concave, so the
    solution is the optimum.

    Args:
        elements: Change rates, worth and sizes.
        budget: What polls may cost per second.
        order: How the polls of an element lie in time.
        least: Least frequency of each element, see :func:`~freshet.mirror.floors.floors`.
        start: Where the search begins, see :func:`~freshet.mirror.again.start_after`.

    Raises:
        UserError: A number makes no sense, or the floors need more than the budget.

    Table 2.1, profile P1, prints 1.15, 1.36, 1.35, 1.14 and 0:

    >>> plan(Elements.of([1, 2, 3, 4, 5]), 5.0).frequencies.round(2)
    array([1.15, 1.36, 1.35, 1.14, 0.  ])
    """
    check_budget(budget)
    elements.check()
    low = _least(elements, budget, least)
    needed = 0.0 if low is None else float(elements.sizes @ low)
    rest = budget - needed
    some = Candidates.of(elements, low)
    if some.price == 0.0 or rest <= _ROUNDING * budget:
        return RefreshPlan(elements, np.zeros(len(elements)) if low is None else low.copy(), 0.0, order)
    if start is not None and start.spent is not None:
        start = start._replace(spent=start.spent - needed)
    found = search(some, rest, ORDERS[order], start)
    return RefreshPlan(elements, found.frequencies, found.mu, order, slope=found.slope, evaluations=found.evaluations)


def _least(elements: Elements, budget: float, least: Floats | None) -> Floats | None:
    if least is None:
        return None
    if len(least) != len(elements):
        raise UserError(f"there are {len(elements)} elements, but {len(least)} least frequencies")
    if not np.isfinite(least).all() or (least < 0.0).any():
        row = int(np.argmax(~(np.isfinite(least) & (least >= 0.0))))
        raise UserError(f"row {row}: the least frequency is {float(least[row])}; it must be a number of at least 0")
    needed = float(elements.sizes @ least)
    if needed > budget * (1.0 + _ROUNDING):
        raise UserError(f"the floors need a budget of at least {needed:.6g}, and it is {budget:.6g}")
    return least
