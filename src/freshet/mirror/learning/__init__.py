"""Learning change rates from polls that say only "changed" or "not"."""

from freshet.mirror.learning.learner import Learner
from freshet.mirror.learning.prior import RatePrior

__all__ = ["Learner", "RatePrior"]
