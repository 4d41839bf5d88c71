"""The hard budget of a mirror: polls or bytes a second, whatever they are for."""

from __future__ import annotations

import math
from typing import Final

BURST: Final = 0.1
"""Seconds whose budget may be spent at once. It is all that a pause saves up."""


class Budget:
    """A token bucket. In any span of t seconds it grants at most ``rate * (t + BURST)``, and one request more.

    It begins empty. So a process that is killed and started again spends no more than one that ran on. A request takes
    what it is expected to cost before it begins; the difference is settled when it has ended. While a settlement has
    left a debt, nothing is granted.

    Args:
        rate: Tokens a second.
        now: The time.

    >>> budget = Budget(10.0, now=0.0)
    >>> budget.take(1.0, now=0.05), budget.take(1.0, now=0.15), budget.take(1.0, now=0.15)
    (False, True, False)
    >>> [budget.take(1.0, now=3600.0) for _ in range(3)]
    [True, False, False]
    """

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._most = max(1.0, rate * BURST)
        self._tokens, self._at = 0.0, now
        self.spent = 0.0
        """All tokens that were taken."""

    def take(self, tokens: float, now: float) -> bool:
        """Takes tokens for a request that is about to begin, if there are any."""
        self._refill(now, tokens)
        # What costs more than the bucket holds waits for a full bucket and leaves a debt.
        if self._tokens < min(tokens, self._most) - 1e-9:
            return False
        self._tokens -= tokens
        self.spent += tokens
        return True

    def settle(self, taken: float, cost: float) -> None:
        """A request has cost more or less than was taken for it."""
        self._tokens += taken - cost
        self.spent += cost - taken

    def room(self, now: float) -> float:
        """Tokens that could be taken now."""
        self._refill(now, 0.0)
        return max(0.0, self._tokens)

    def wait(self, tokens: float, now: float) -> float:
        """Seconds until so many tokens can be taken, unless others take them first."""
        self._refill(now, 0.0)
        missing = min(tokens, self._most) - self._tokens
        return max(0.0, missing / self.rate) if math.isfinite(self.rate) else 0.0

    def _refill(self, now: float, wanted: float) -> None:
        # A clock that goes back gives nothing and takes nothing.
        passed, self._at = max(0.0, now - self._at), now
        self._tokens = min(max(self._most, self._tokens), self._tokens + passed * self.rate)
