"""The learner that everybody writes first, as a baseline."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.learning.intervals import Seen
from freshet.mirror.learning.learner import Learner

Floats = NDArray[np.float64]


class NaiveLearner(Learner):
    """Estimates by changes over time, which several changes between two polls make too small (CGM00a §4.1).

    >>> learner = NaiveLearner(1)
    >>> for second in range(1001):
    ...     learner.polled(0, 1.0 * second, changed=second % 100 < 95)  # three changes a second
    >>> float(learner.rates()[0]) < 1.0
    True
    """

    def sort_in(self, counts: list[float], times: list[float], length: float) -> None:
        counts[0] += 1.0
        times[0] += length

    def estimate(self, seen: Seen) -> Floats:
        changes = seen.changes.sum(axis=0) + seen.dated + seen.trust * self.prior.shape
        time = seen.changed_time.sum(axis=0) + seen.quiet_time + seen.trust * self.prior.seconds
        return np.asarray(changes / time)
