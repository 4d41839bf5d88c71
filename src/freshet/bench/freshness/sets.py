"""The set mode for policies that have an order but no ratio."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from freshet.model import NOTHING, Decision, Step, View
from freshet.policies import BusyPrice, Policy, Price, RatioPolicy, create
from freshet.policies.around import Around
from freshet.policies.aurora.rest_costs import RestCosts
from freshet.policies.narrowed import NarrowedView


class InOrder(Around):
    """Runs the next queries of another policy's order together: as many as it takes to be worth the price of a step.

    The set of a ratio policy ends when one more query would lower its ratio. An order has no such point, so the set
    ends as soon as the expected work of its members has reached the price. Both use the same price.

    Args:
        inner: The policy that gives the order; it must serve one query per decision.
        price: The price of a step.
    """

    name: ClassVar[str] = "in-order"

    def __init__(self, inner: Policy, price: Price | None = None) -> None:
        super().__init__(inner)
        self.price: Price = price or BusyPrice()
        self._costs = RestCosts()

    def completed(self, view: View, operators: Iterable[int]) -> None:
        self._costs.ran()
        super().completed(view, operators)

    def changed(self, view: View, query: int) -> None:
        self._costs.forget()
        super().changed(view, query)

    def decide(self, view: View) -> Decision:
        """One step."""
        price = self.price.seconds(view)
        ready = dict(view.ready)
        rest = NarrowedView(view, ready)
        members: dict[int, None] = {}
        work = 0.0
        while (not members or work < price) and (steps := self.inner.decide(rest).steps):
            nodes = dict.fromkeys(number for step in steps for number in step.nodes)
            members |= nodes
            for first in nodes.keys() & ready.keys():
                work += self._costs.of(view, first) * view.operators[first].pending
                del ready[first]
        if not members:
            return NOTHING
        self.price.took(view, work)
        return Decision.run(Step(tuple(members)))


def with_sets(name: str) -> Policy:
    """The policy with a name, in set mode.

    >>> with_sets("fas-mcq").name, with_sets("rr").name
    ('fas-mcq', 'in-order')
    """
    policy = create(name)
    return create(f"{name}+set") if isinstance(policy, RatioPolicy) else InOrder(policy)
