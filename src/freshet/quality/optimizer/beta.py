"""Finds beta of FAS-MCQ(beta) for a bound on response time, or on freshness (FAS §5.2)."""

from __future__ import annotations

from typing import Final

from freshet.model.promises.balance import BalanceBound

_GAIN: Final = 0.5
"""How much beta moves for a figure that is off by a factor of e."""
_MOST: Final = 0.15
"""Maximum move at a look: load steps and noise must not throw beta from one end to the other."""
_NEAR: Final = 0.05
"""A figure within this share of its bound, on the right side, is let alone."""


class BetaFinder:
    """Moves beta until the bound is just kept: with a bound on response time it is as high as possible (fresh), with a
    bound on freshness as low as possible (quick).

    It moves in proportion to the logarithm of the miss, never far at once, and rests near the bound. So it follows a
    step of the load within some looks and does not swing. If the bound cannot be kept, beta stays at its best end.

    >>> finder = BetaFinder(BalanceBound("response", 1.0))
    >>> [round(finder.look(observed), 3) for observed in (2.0, 1.2, 0.99, 0.97, 0.5, None)]
    [0.85, 0.759, 0.759, 0.759, 0.909, 0.909]
    """

    def __init__(self, bound: BalanceBound) -> None:
        self.bound = bound
        self.beta = 1.0 if bound.measure == "response" else 0.0
        self.observed: float | None = None
        self.looks = 0

    def look(self, observed: float | None) -> float:
        """The beta from now on, after a figure was observed; None: there was nothing to observe."""
        self.looks += 1
        self.observed = observed
        if observed is not None:
            excess = self.bound.excess(observed)
            if not -_NEAR <= excess <= 0.0:
                towards = -1.0 if self.bound.measure == "response" else 1.0
                move = min(_MOST, max(-_MOST, _GAIN * excess))
                self.beta = min(1.0, max(0.0, self.beta + towards * move))
        return self.beta
