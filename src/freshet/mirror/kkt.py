"""Whether a plan is optimal: the conditions of Karush, Kuhn and Tucker."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements
from freshet.mirror.orders import ORDERS, OrderName
from freshet.mirror.plan import RefreshPlan

Floats = NDArray[np.float64]


def kkt_residual(
    elements: Elements, made: RefreshPlan, budget: float, *, order: OrderName = "fixed", least: Floats | None = None
) -> float:
    """The greatest relative violation of a condition; the objective is concave, so 0 means optimal (CAR §2.7).

    The conditions: the budget is spent; no floor is broken; an element above its floor gains mu from one more unit of
    budget, an element at its floor at most mu.

    >>> from freshet.mirror.plan import plan
    >>> elements = Elements.of([1, 2, 3, 4, 5])
    >>> kkt_residual(elements, plan(elements, 5.0), 5.0) < 1e-6
    True
    """
    low = np.zeros(len(elements)) if least is None else least
    gains = marginal_gains(elements, made.frequencies, order)
    if made.mu == 0.0:
        return float(gains.max(initial=0.0) > 0.0)
    scale = np.where(low > 0.0, low, 1.0)
    broken = float(np.max((low - made.frequencies) / scale, initial=0.0))
    excess = gains / made.mu - 1.0
    above = made.frequencies > low * (1.0 + 1e-9)
    unequal = float(np.abs(excess[above]).max(initial=0.0))
    missed = float(excess[~above].max(initial=0.0))
    return max(abs(made.spent / budget - 1.0), broken, unequal, missed)


def marginal_gains(elements: Elements, frequencies: Floats, order: OrderName = "fixed") -> Floats:
    """What each element gains from one more unit of budget: p g(r) / (lambda s), with g = 1 where nobody polls.

    >>> marginal_gains(Elements.of([1.0, 0.0, 2.0]), np.array([0.0, 1.0, 2.0])).round(3)
    array([1.   , 0.   , 0.132])
    """
    gains = np.zeros(len(elements))
    some = elements.rates > 0.0
    gains[some] = elements.worth[some] / (elements.rates[some] * elements.sizes[some])
    polled = some & (frequencies > 0.0)
    gains[polled] *= ORDERS[order].gain(elements.rates[polled] / frequencies[polled])
    return gains
