"""Learning change rates from polls that say only "changed" or "not", and worth from accesses."""

from freshet.mirror.learning.changes_over_time import NaiveLearner
from freshet.mirror.learning.estimators import bias_reduced, by_last_modified, maximum_likelihood, naive
from freshet.mirror.learning.learner import Learner
from freshet.mirror.learning.prior import RatePrior
from freshet.mirror.learning.worth import from_accesses, from_readers, from_users

__all__ = [
    "Learner",
    "NaiveLearner",
    "RatePrior",
    "bias_reduced",
    "by_last_modified",
    "from_accesses",
    "from_readers",
    "from_users",
    "maximum_likelihood",
    "naive",
]
