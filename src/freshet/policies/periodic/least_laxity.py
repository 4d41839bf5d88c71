"""Least laxity first: by the time that is left beyond the work, to compare."""

from __future__ import annotations

from freshet.model import InstanceView, View
from freshet.policies.periodic.scheduler import PeriodicScheduler
from freshet.policies.periodic.seconds import expected_seconds


class LeastLaxity(PeriodicScheduler):
    """The least laxity first: time to the deadline without what it takes."""

    name = "llf"
    rule = "the least laxity first: time to the deadline without what it takes"

    def rank(self, view: View, instance: InstanceView) -> float:
        return instance.deadline - view.now - expected_seconds(view, instance)
