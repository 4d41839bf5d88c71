"""Earliest deadline first (RT §3; C. L. Liu and J. W. Layland, 1973)."""

from __future__ import annotations

from freshet.model import InstanceView, View
from freshet.policies.periodic.scheduler import PeriodicScheduler


class EarliestDeadline(PeriodicScheduler):
    """The earliest deadline first."""

    name = "edf"
    rule = "the earliest deadline first"

    def rank(self, view: View, instance: InstanceView) -> float:
        return instance.deadline
