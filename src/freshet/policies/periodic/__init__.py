"""Which instances of periodic queries run next (RT §2.2), one scheduler a file."""

from freshet.policies.periodic.first import PeriodicFirst
from freshet.policies.periodic.registry import check_periodic, create_periodic, periodic_names
from freshet.policies.periodic.scheduler import PeriodicScheduler

__all__ = ["PeriodicFirst", "PeriodicScheduler", "check_periodic", "create_periodic", "periodic_names"]
