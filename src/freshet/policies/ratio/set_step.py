"""The set step: how many queries to run together if a step itself costs time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from freshet.model import NOTHING, Decision, Step, View
from freshet.policies.ratio.price import BusyPrice, Price

if TYPE_CHECKING:
    from freshet.policies.ratio.base import RatioPolicy


class SetStep:
    """Runs the best queries together: the prefix of the ranking that maximises (sum of v) / (price + sum of c).

    The papers assume that a step costs nothing, and run the query with the highest v / c. If a step has an overhead,
    queries share it. The best of all sets is a prefix of the ranking by v / c. It ends before the first query whose own
    ratio does not exceed that of the set so far. At price 0 it is the best query alone.

    Args:
        price: Price of a step; by default the measured overhead over the idle share of time.
    """

    def __init__(self, price: Price | None = None) -> None:
        self.price: Price = price or BusyPrice()
        self._paid = 0.0

    def choose(self, policy: RatioPolicy, view: View) -> Decision:
        ranking = ((number, ratio) for number, ratio in policy.queue if number in view.ready)
        costs: dict[int, float] = {}

        def items() -> Iterable[tuple[float, float]]:
            for number, ratio in ranking:
                costs[number] = policy.cost(view, number)
                yield ratio * costs[number], costs[number]

        self._paid = self.price.seconds(view)
        taken = best_prefix(items(), self._paid)
        members = list(costs)[:taken]
        if not members:
            return NOTHING
        self.price.took(view, sum(costs[number] for number in members))
        if len(members) == 1:
            return policy.serve(view, members[0])
        return Decision.run(Step(policy.through.together(view, members), policy.rows))

    def weighs(self, view: View) -> dict[str, float]:
        return {"price_s": self._paid, "overhead_s": view.overhead()}


def best_prefix(items: Iterable[tuple[float, float]], price: float) -> int:
    """How many of the items (value, cost), ranked by value / cost, to take; at least one if there is one.

    An item raises V / (price + C) exactly if its own ratio v / c is higher. After the first item that does not raise
    it, no other can.

    >>> best_prefix([(4.0, 1.0), (3.0, 1.0), (0.5, 1.0)], price=0.0)
    1
    >>> best_prefix([(4.0, 1.0), (3.0, 1.0), (0.5, 1.0)], price=2.0)
    2
    """
    taken, values, costs = 0, 0.0, price
    for value, cost in items:
        if taken and value * costs <= values * cost:
            break
        taken, values, costs = taken + 1, values + value, costs + cost
    return taken
