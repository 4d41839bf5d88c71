"""Audits: polls at random moments that measure how fresh the mirror really is."""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

LEAD: Final = 3.0
"""Seconds by which audits are drawn ahead: that one is to come is committed meanwhile."""
_LATE: Final = 1.0
"""Seconds after its moment at which an audit is not made any more."""


class Audits:
    """Chooses elements by their worth at moments of a Poisson process, so that what it meets is an unbiased sample of
    perceived freshness (CAR Eq. 2.2): arrivals of a Poisson process see time averages, and a poll tells whether the
    copy was still right. Elements and moments are drawn ahead, so that the moment of an audit depends on nothing that
    happens to its element.

    An audit renews the copy, like any poll, so the audited elements are a little fresher than without it.

    Args:
        rate: Audits a second; 0: none.
        seed: Of the random choices.

    >>> audits = Audits(rate=1.0, seed=5)
    >>> audits.draw(0.0, worth=lambda: [0.0, 1.0])
    [1, 1]
    >>> audits.due(now=0.0), audits.awaits(1), audits.due(now=3.0), audits.awaits(1)
    ([], True, [1], False)
    >>> for fresh in (True, True, False, True):
    ...     audits.met(fresh)
    >>> audits.freshness, audits.count
    (0.75, 4)
    """

    def __init__(self, rate: float, seed: int | None = None) -> None:
        self.rate = rate
        self._random = random.Random(seed)
        self._next: float | None = None
        self._drawn: deque[tuple[float, int]] = deque()
        self._awaited: Counter[int] = Counter()
        self.count = 0
        """Number of audits, also of those that brought no answer."""
        self.fresh = 0
        """Number of those that found the copy right."""

    def draw(self, now: float, worth: Callable[[], Sequence[float]]) -> list[int]:
        """Draws the audits of the next seconds, and returns the elements that are new among them.

        Args:
            now: The time.
            worth: Gives the worth of each element; it is asked only if there is something to draw.
        """
        if self.rate <= 0.0:
            return []
        if self._next is None or self._next < now:  # what a pause missed is not made up for
            self._next = now + self._random.expovariate(self.rate)
        drawn = list[int]()
        sums: list[float] | None = None
        while self._next < now + LEAD:
            sums = list(accumulate(worth())) if sums is None else sums
            if sums and sums[-1] > 0.0:
                drawn += self._random.choices(range(len(sums)), cum_weights=sums)
                self._drawn.append((self._next, drawn[-1]))
            self._next += self._random.expovariate(self.rate)
        self._awaited.update(drawn)
        return drawn

    def due(self, now: float) -> list[int]:
        """Elements whose moment has come; without those whose moment was missed."""
        found = list[int]()
        while self._drawn and self._drawn[0][0] <= now:
            moment, number = self._drawn.popleft()
            self._awaited[number] -= 1
            if not self._awaited[number]:
                del self._awaited[number]
            if now - moment < _LATE:
                found.append(number)
        return found

    def awaits(self, number: int) -> bool:
        """Whether an audit of an element was drawn whose moment is to come."""
        return number in self._awaited

    def met(self, fresh: bool) -> None:
        """The end of an audit: the copy was right, or it was not, or nobody knows."""
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
