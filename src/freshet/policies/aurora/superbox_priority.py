"""Superboxes of overlapping graphs by the curves of their roots, feeders before consumers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from freshet.model import View
from freshet.policies.aurora.schedule import LEVEL
from freshet.policies.aurora.superbox import SuperboxNodes
from freshet.policies.aurora.two_level import TwoLevel


class SuperboxSlopeSlack(TwoLevel):
    """Runs whole superboxes by slope and slack: those whose tuples lose utility fastest, then those closest to it.

    Superboxes are *intersections* of query trees, so that shared work is in one of them alone (CAR §6.3.6.1.1). The
    curve of a superbox is that of its root: the sum of the curves of all queries behind it, shifted by the cost that
    remains to each. It is read at the mean latency of the tuples that wait anywhere in the superbox, which takes one
    look at each queue (CAR §6.3.8). A superbox whose tuples feed a better one runs before that one, because what the
    better one waits for may lie there (CAR §6.3.6.1).

    Args:
        size: N, the number of superboxes that one decision puts in order.
        high_cost: From this many seconds per tuple on, an operator ends its superbox (CAR §6.3.7).

    Box 1 feeds two queries, of which the second is urgent; tuples wait at both:

    >>> from freshet.model import Curve, Promises
    >>> from freshet.simulation.view import RecordView
    >>> view, policy = RecordView.over({0: (1, 2), 1: (), 2: ()}), SuperboxSlopeSlack(3)
    >>> view.now = 1.0
    >>> for number, deadline in enumerate((9.0, 9.0, 2.0)):
    ...     operator = view.operators[number]
    ...     operator.promises = Promises(curve=Curve.deadline(deadline))
    ...     operator.pending, operator.head_arrival = 1, 0.5
    ...     view.ready[number] = None
    >>> [step.nodes for step in policy.decide(view).steps]
    [(0,), (2,), (1,)]
    """

    name: ClassVar[str] = "superbox-slope-slack"
    keeps_curves = True

    def __init__(self, size: int = 1, *, high_cost: float = math.inf) -> None:
        super().__init__("intersections", "min-cost", size, high_cost=high_cost)
        self.rule = "superbox of the steepest slope, then of the least slack; feeders first"

    def weighs(self, view: View, operator: int) -> dict[str, float]:
        superbox = self._superboxes[self._owner[operator]]
        slope, slack = self.p_tuple(view, superbox)
        return {"slope": slope, "slack_s": slack, "waiting": sum(view.operators[each].pending for each in superbox)}

    def p_tuple(self, view: View, superbox: SuperboxNodes) -> tuple[float, float]:
        """(slope, slack) of the root's curve at the expected mean latency of all that waits in a superbox."""
        operators, behind = view.operators, set(superbox)
        rests: dict[int, float] = {}
        waiting, waited, work = 0, 0.0, 0.0
        for number in reversed(superbox):
            each = operators[number]
            rests[number] = each.cost + each.selectivity * sum(
                rests.get(to, 0.0) for to in each.readers if to in behind
            )
            if each.pending:
                waiting += each.pending
                waited += each.pending * (view.now - each.mean_arrival)
                work += each.pending * rests[number]
        curve = operators[superbox[-1]].promises.curve or LEVEL
        latency = view.overhead(superbox) + work + (waited / waiting if waiting else 0.0)
        return curve.slope(latency), curve.slack(latency)

    def _turns(self, view: View, members: Mapping[int, Sequence[int]]) -> list[int]:
        ranks = {turn: self.p_tuple(view, self._superboxes[turn]) for turn in members}
        self.operations += 1 + sum(len(self._superboxes[turn]) for turn in members) + len(members)
        order: dict[int, None] = {}
        for turn in sorted(ranks, key=lambda each: (-ranks[each][0], ranks[each][1], each)):
            self._after_feeders(view, turn, members, order)
        return list(order)[: self.size]

    def _after_feeders(
        self, view: View, turn: int, members: Mapping[int, Sequence[int]], order: dict[int, None]
    ) -> None:
        """Adds a superbox to an order, after those with tuples that feed it."""
        if turn in order:
            return
        for number in self._superboxes[turn]:
            for source in view.operators[number].inputs:
                if self._owner[source] != turn and self._owner[source] in members:
                    self._after_feeders(view, self._owner[source], members, order)
        order[turn] = None


POLICIES: Final = (SuperboxSlopeSlack,)
