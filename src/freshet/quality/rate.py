"""Rates of what happened recently."""

from __future__ import annotations

import math

RECENT = 10.0
"""Seconds over which recent rates look back."""


class RecentRate:
    """Amount per second; what happened t seconds ago counts by exp(-t / span).

    The sum is divided by what a steady rate would have gathered since ``start``, so that a young meter is not too low.

    >>> rate = RecentRate(start=0.0)
    >>> for second in range(1, 101):
    ...     rate.add(50, at=float(second))
    >>> round(rate.rate(now=100.5))
    50
    """

    __slots__ = ("_amount", "_at", "_span", "_start")

    def __init__(self, start: float, span: float = RECENT) -> None:
        self._start = start
        self._span = span
        self._at = start
        self._amount = 0.0

    def add(self, amount: float, at: float) -> None:
        """Records an amount at a time."""
        passed = at - self._at
        if passed > 0.0:
            self._amount = self._amount * math.exp(-passed / self._span) + amount
            self._at = at
        else:
            self._amount += amount * math.exp(passed / self._span)

    def rate(self, now: float) -> float:
        """Amount per second around ``now``; 0 before any time has passed."""
        if now <= self._start:
            return 0.0
        gathered = -math.expm1((self._start - now) / self._span) * self._span
        return self._amount * math.exp(min(0.0, (self._at - now) / self._span)) / gathered
