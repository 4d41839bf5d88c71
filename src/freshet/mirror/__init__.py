"""Mirrors: which elements to poll how often, so that accesses see fresh data (CAR chapter 2, §6.2).

Everything here is pure: no clock, no thread, no file. Times are seconds that the caller passes in.
"""

from freshet.mirror.elements import Elements
from freshet.mirror.learning import Learner, RatePrior
from freshet.mirror.measures import ages_of, freshness_of, perceived_freshness
from freshet.mirror.plan import RefreshPlan, plan
from freshet.mirror.refresher import Refresher

__all__ = [
    "Elements",
    "Learner",
    "RatePrior",
    "RefreshPlan",
    "Refresher",
    "ages_of",
    "freshness_of",
    "perceived_freshness",
    "plan",
]
