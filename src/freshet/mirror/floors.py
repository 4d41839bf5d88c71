"""Floors: how often an element must be polled to keep a promise of its own (CAR §6.2.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements
from freshet.mirror.orders import ORDERS, OrderName, PollOrder
from freshet.model import UserError

Floats = NDArray[np.float64]

_WIDEST: Final = 350.0
"""Logarithms of r that are looked at, on both sides of 0."""
_HALVINGS: Final = 62


@dataclass(frozen=True, slots=True)
class Floors:
    """What elements are promised, whatever their change rates turn out to be; row i of each array is element i.

    Args:
        freshness: Least freshness, from 0 (none) to below 1.
        age: Greatest expected age in seconds; infinite for none.

    >>> promised = Floors(np.array([0.0, 0.5]), np.array([np.inf, np.inf]))
    >>> promised.within(Elements.of([1.0, 2.0]), budget=9.0)
    (array([0.        , 1.25500097]), 1.25500097...)
    >>> promised.within(Elements.of([1.0, 2.0]), budget=1.0)
    (array([0., 1.]), 1.25500097...)
    """

    freshness: Floats
    age: Floats

    def within(self, elements: Elements, budget: float) -> tuple[Floats, float]:
        """The least frequencies, and the budget that they need.

        If they need more than there is, all get the same share of what they need. Elements without worth need nothing.
        """
        least = np.where(elements.worth > 0.0, floors(elements, freshness=self.freshness, age=self.age), 0.0)
        needed = float(elements.sizes @ least)
        return (least * (budget / needed) if needed > budget else least), needed

    def and_more(self, freshness: Floats, age: Floats) -> Floors:
        """These, and those of the elements that come after them."""
        return Floors(np.append(self.freshness, freshness), np.append(self.age, age))

    def __bool__(self) -> bool:
        return bool((self.freshness > 0.0).any() or np.isfinite(self.age).any())


def floors(
    elements: Elements,
    *,
    freshness: Floats | None = None,
    age: Floats | None = None,
    order: OrderName = "fixed",
) -> Floats:
    """The least frequency of each element, for ``plan(..., least=...)``.

    Freshness falls and age rises with r, so each floor is one frequency. What is left of the budget goes to where it
    gains most, so the plan is still optimal among those that keep the floors.

    Args:
        elements: Change rates; elements that never change need no polls.
        freshness: Least freshness of each element, from 0 (none) to below 1.
        age: Greatest expected age of each element in seconds; infinite for none.
        order: How the polls of an element lie in time.

    >>> elements = Elements.of([1.0, 2.0, 0.0])
    >>> floors(elements, freshness=np.array([0.0, 0.5, 0.9])).round(3)
    array([0.   , 1.255, 0.   ])
    >>> floors(elements, age=np.array([0.1321205588, np.inf, 1.0])).round(3)
    array([1., 0., 0.])
    """
    least = np.zeros(len(elements))
    if freshness is not None:
        least = np.maximum(least, _for_freshness(elements, freshness, ORDERS[order]))
    if age is not None:
        least = np.maximum(least, _for_age(elements, age, ORDERS[order]))
    return least


def _for_freshness(elements: Elements, wanted: Floats, order: PollOrder) -> Floats:
    _check(wanted, (wanted >= 0.0) & (wanted < 1.0), "least freshness", "at least 0 and below 1", len(elements))
    some = (wanted > 0.0) & (elements.rates > 0.0)
    target = wanted[some]
    return _spread(elements, some, _root(lambda r: target - order.freshness(r), len(target)))


def _for_age(elements: Elements, wanted: Floats, order: PollOrder) -> Floats:
    _check(wanted, wanted > 0.0, "greatest age", "above 0", len(elements))
    some = np.isfinite(wanted) & (elements.rates > 0.0)
    target = wanted[some] * elements.rates[some]
    return _spread(elements, some, _root(lambda r: r * order.age(r) - target, len(target)))


def _root(rising: Callable[[Floats], Floats], count: int) -> Floats:
    """Where functions that rise with r are 0, all at once, by halving the range of the logarithm."""
    low, high = np.full(count, -_WIDEST), np.full(count, _WIDEST)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = rising(np.exp(middle)) > 0.0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(np.exp(low))


def _spread(elements: Elements, some: NDArray[np.bool_], r: Floats) -> Floats:
    least = np.zeros(len(elements))
    least[some] = elements.rates[some] / r
    return np.asarray(least)


def _check(values: Floats, fine: NDArray[np.bool_], name: str, wanted: str, count: int) -> None:
    if len(values) != count:
        raise UserError(f"there are {count} elements, but {len(values)} values of the {name}")
    if not fine.all():
        row = int(np.argmin(fine))
        raise UserError(f"row {row}: the {name} is {float(values[row])}; it must be {wanted}")
