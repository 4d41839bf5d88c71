"""Rate monotonic: fixed priorities by period (C. L. Liu and J. W. Layland, 1973), to compare."""

from __future__ import annotations

from freshet.model import InstanceView, View
from freshet.policies.periodic.scheduler import PeriodicScheduler


class RateMonotonic(PeriodicScheduler):
    """The shortest period first."""

    name = "rm"
    rule = "the shortest period first"

    def rank(self, view: View, instance: InstanceView) -> float:
        return view.queries[instance.query].promises.period or 0.0
