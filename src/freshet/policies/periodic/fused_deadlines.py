"""Earliest deadline first, with instances that share a step."""

from __future__ import annotations

from freshet.model import InstanceView, View
from freshet.policies.periodic.earliest_deadline import EarliestDeadline
from freshet.policies.periodic.seconds import expected_seconds


class FusedDeadlines(EarliestDeadline):
    """The earliest deadline first; further instances join the same step, in this order, as long as all of the step are
    expected to keep the deadlines that they can keep alone. So the overhead of a step is paid once."""

    name = "edf-fused"
    rule = "the earliest deadline first, with others in the same step while none of them becomes late by it"

    def together(self, view: View, order: list[InstanceView]) -> list[InstanceView]:
        chosen: list[InstanceView] = []
        seconds, bound = view.overhead(), float("inf")
        for each in order:
            own = expected_seconds(view, each)
            # An instance that is late anyway sets no bound.
            alone = view.now + view.overhead() + own
            limit = min(bound, each.deadline) if alone <= each.deadline else bound
            if chosen and view.now + seconds + own > limit:
                break
            chosen.append(each)
            seconds, bound = seconds + own, limit
        return chosen
