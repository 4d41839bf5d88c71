"""Deadline monotonic: fixed priorities by relative deadline, to compare."""

from __future__ import annotations

from freshet.model import InstanceView, View
from freshet.policies.periodic.scheduler import PeriodicScheduler


class DeadlineMonotonic(PeriodicScheduler):
    """The shortest time from release to deadline first."""

    name = "dm"
    rule = "the shortest time from release to deadline first"

    def rank(self, view: View, instance: InstanceView) -> float:
        return instance.deadline - instance.release
