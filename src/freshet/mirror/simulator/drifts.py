"""How change rates change themselves: what a mirror that learns has to find its way back from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements
from freshet.mirror.plan import plan

Floats = NDArray[np.float64]
Drift = Callable[[Elements, float, np.random.Generator], Floats]
"""New change rates of elements that are polled within a budget."""

FASTER: Final = 50.0


def exchanged(elements: Elements, budget: float, rng: np.random.Generator) -> Floats:
    """Half of the elements exchange their rates.

    >>> exchanged(Elements.of([1.0, 2.0]), 1.0, np.random.default_rng(1))
    array([1., 2.])
    """
    rates = elements.rates.copy()
    some = rng.choice(len(rates), len(rates) // 2, replace=False)
    rates[some] = rates[rng.permutation(some)]
    return rates


def some_faster(elements: Elements, budget: float, rng: np.random.Generator) -> Floats:
    """One in twenty elements changes 50 times as often.

    >>> float(some_faster(Elements.of(np.ones(40)), 1.0, np.random.default_rng(1)).sum())
    138.0
    """
    rates = elements.rates.copy()
    rates[rng.choice(len(rates), len(rates) // 20, replace=False)] *= FASTER
    return rates


def unpolled_slower(elements: Elements, budget: float, rng: np.random.Generator) -> Floats:
    """Half of the elements that the best plan never polls change 50 times as rarely.

    >>> float(unpolled_slower(Elements.of([1.0, 100.0, 100.0]), 1.0, np.random.default_rng(1)).min())
    1.0
    """
    never = np.flatnonzero(plan(elements, budget).frequencies == 0.0)
    rates = elements.rates.copy()
    rates[rng.choice(never, len(never) // 2, replace=False)] /= FASTER
    return rates
