"""How much polls surprise: whether what was learned still holds."""

from __future__ import annotations

from math import exp, expm1
from typing import Final

_SPAN: Final = 500.0
"""Polls over which surprise is averaged."""
_NOISE: Final = 0.15
"""Excess that chance alone brings about in this many polls."""


class Surprise:
    """Compares the squared errors of forecasts with those to be expected (CAR §6.2.4).

    A poll after t seconds finds a change with probability q = 1 - e^(-rate t). If the rates are right, the mean of
    (found - q)^2 is that of q (1 - q).

    >>> surprise = Surprise()
    >>> for _ in range(200):
    ...     surprise.saw(rate=0.1, seconds=1.0, changed=True)
    >>> surprise.excess > 1.0
    True
    """

    def __init__(self, span: float = _SPAN) -> None:
        self._alpha = 1.0 / span
        self._errors = 0.15
        self._expected = 0.15

    def saw(self, *, rate: float, seconds: float, changed: bool) -> None:
        """Takes in the answer of a poll."""
        quiet = exp(-rate * seconds)
        error = quiet if changed else expm1(-rate * seconds)
        self._errors += self._alpha * (error * error - self._errors)
        self._expected += self._alpha * (quiet * (1.0 - quiet) - self._expected)

    @property
    def excess(self) -> float:
        """By which share errors exceed those to be expected, beyond what is noise; 0 if all is as learned."""
        return max(0.0, self._errors / max(self._expected, 1e-9) - 1.0 - _NOISE)
