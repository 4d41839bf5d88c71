"""Audits: polls at random moments that measure how fresh the mirror really is."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import accumulate


class Audits:
    """Chooses elements by their worth at moments of a Poisson process, so that what it meets is an unbiased sample of
    perceived freshness (CAR Eq. 2.2): arrivals of a Poisson process see time averages, and a poll tells whether the
    copy was still right.

    An audit renews the copy, like any poll, so the audited elements are a little fresher than without it.

    Args:
        rate: Audits a second; 0: none.
        seed: Of the random choices.

    >>> audits = Audits(rate=1.0, seed=1)
    >>> audits.is_due(now=0.0), audits.is_due(now=100.0)
    (False, True)
    >>> for fresh in (True, True, False, True):
    ...     audits.met(fresh)
    >>> audits.freshness, audits.count
    (0.75, 4)
    """

    def __init__(self, rate: float, seed: int | None = None) -> None:
        self.rate = rate
        self._random = random.Random(seed)
        self._due: float | None = None
        self.count = 0
        """Number of audits that were answered."""
        self.fresh = 0
        """Number of those that found the copy right."""

    def is_due(self, now: float) -> bool:
        """Whether the next audit is due; if so, the one after it is planned."""
        if self.rate <= 0.0:
            return False
        if self._due is None:
            self._due = now + self._random.expovariate(self.rate)
        if now < self._due:
            return False
        # After a pause there is one audit, not all that were missed.
        self._due = now + self._random.expovariate(self.rate)
        return True

    def choose(self, worth: Sequence[float]) -> int | None:
        """An element, by worth; None if none is worth anything."""
        sums = list(accumulate(worth))
        if not sums or sums[-1] <= 0.0:
            return None
        return self._random.choices(range(len(sums)), cum_weights=sums)[0]

    def met(self, fresh: bool) -> None:
        """An audit was answered: the copy was right, or it was not."""
        self.count += 1
        self.fresh += fresh

    @property
    def freshness(self) -> float | None:
        """Share of audits that found the copy right; None without any."""
        return self.fresh / self.count if self.count else None

    @property
    def error(self) -> float | None:
        """Standard error of the share."""
        if not self.count:
            return None
        share = (self.fresh + 1.0) / (self.count + 2.0)
        return math.sqrt(share * (1.0 - share) / self.count)
