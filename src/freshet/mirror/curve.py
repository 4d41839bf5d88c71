"""Freshness by budget: how much buys how much (CAR §6.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.mirror.again import start_after
from freshet.mirror.elements import Elements, check_budget
from freshet.mirror.floors import Floors
from freshet.mirror.orders import OrderName
from freshet.mirror.plan import RefreshPlan, plan
from freshet.model import UserError

_CLOSE: Final = 1e-9
_HALVINGS: Final = 60


@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """What a budget buys.

    Args:
        budget: Polls, or bytes, per second.
        perceived: Perceived freshness of the optimal plan.
        general: General freshness of that plan.
        polled: Share of the elements that it polls.
    """

    budget: float
    perceived: float
    general: float
    polled: float


def budget_curve(
    elements: Elements, budgets: Sequence[float], *, order: OrderName = "fixed", floors: Floors | None = None
) -> list[BudgetPoint]:
    """What each budget buys; each search begins where the one before ended.

    Args:
        elements: Change rates, worth and sizes.
        budgets: Polls, or bytes, per second.
        order: How the polls of an element lie in time.
        floors: What elements are promised; where a budget is not enough, all floors get the same share of it.

    >>> [round(point.perceived, 3) for point in budget_curve(Elements.of([1.0, 2.0, 3.0]), [1.0, 3.0, 9.0])]
    [0.228, 0.461, 0.742]
    """
    points, before = [], None
    for budget in budgets:
        made = _plan(elements, budget, order, floors, before)
        before = made if made.mu else before
        polled = float(np.count_nonzero(made.frequencies)) / max(len(elements), 1)
        points.append(BudgetPoint(budget, made.perceived, made.general, polled))
    return points


def budget_for(
    elements: Elements, perceived: float, *, most: float, order: OrderName = "fixed", floors: Floors | None = None
) -> float:
    """The least budget that buys a perceived freshness, and all floors if ``most`` does.

    Args:
        elements: Change rates, worth and sizes.
        perceived: The perceived freshness wanted.
        most: A budget that is enough.
        order: How the polls of an element lie in time.
        floors: What elements are promised.

    Raises:
        UserError: Not even ``most`` buys it.

    >>> elements = Elements.of([1.0, 2.0, 3.0])
    >>> round(budget_for(elements, 0.461, most=9.0), 1)
    3.0
    >>> round(budget_for(elements, 0.461, most=9.0, floors=Floors(np.array([0, 0, 0.7]), np.full(3, np.inf))), 1)
    4.9
    """
    check_budget(most)
    best = _plan(elements, most, order, floors, None)
    if best.perceived < perceived:
        raise UserError(f"a budget of {most:g} buys a perceived freshness of {best.perceived:.4g}, not {perceived:g}")
    needed = 0.0 if floors is None else floors.within(elements, most)[1]
    low, high, before = min(needed, most), most, best
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if high - low <= _CLOSE * most or middle == 0.0:
            break
        made = _plan(elements, middle, order, floors, before)
        before = made if made.mu else before
        low, high = (low, middle) if made.perceived >= perceived else (middle, high)
    return high


def budget_for_share(elements: Elements, budget: float, share: float = 0.95, *, order: OrderName = "fixed") -> float:
    """The least budget that buys a share of what a budget buys: how little buys 95 % of it.

    >>> round(budget_for_share(Elements.of([1.0, 2.0, 3.0]), 9.0), 2)
    7.58
    """
    return budget_for(elements, share * plan(elements, budget, order=order).perceived, most=budget, order=order)


def _plan(
    elements: Elements, budget: float, order: OrderName, floors: Floors | None, before: RefreshPlan | None
) -> RefreshPlan:
    least = None if floors is None else floors.within(elements, check_budget(budget))[0]
    start = None if before is None else start_after(before, elements, least)
    return plan(elements, budget, order=order, least=least, start=start)
