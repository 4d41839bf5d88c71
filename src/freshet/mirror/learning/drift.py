"""Whether the change rate of an element has changed itself."""

from __future__ import annotations

from math import expm1, log
from typing import Final

_FACTOR: Final = 4.0
"""The test looks for rates that have risen or fallen by this factor."""
_LIMIT: Final = 8.0
"""Evidence that is enough: odds of e^8 = 3,000 to 1."""


class DriftTest:
    """Page's cumulative sums (CUSUM, 1954) of the odds that the rate is four times as high, or a quarter.

    A sum grows with polls that the other rate explains better, and never falls below 0. Chance alone reaches the limit
    less than once in a thousand polls.

    Args:
        faster: The sum for a higher rate so far.
        slower: The sum for a lower rate so far.

    >>> test = DriftTest()
    >>> [test.saw(expected=1.0, changed=True) for _ in range(25)].index(4.0)
    18
    >>> test.saw(expected=20.0, changed=False)
    0.25
    """

    __slots__ = ("faster", "slower")

    def __init__(self, faster: float = 0.0, slower: float = 0.0) -> None:
        self.faster, self.slower = faster, slower

    def saw(self, expected: float, changed: bool) -> float:
        """Takes in a poll.

        Args:
            expected: Number of changes that were expected since the last poll.
            changed: Whether there was one.

        Returns:
            By which factor the rate has evidently changed, then the sums begin anew; 1 if it has not.
        """
        self.faster = max(0.0, self.faster + _log_odds(expected, expected * _FACTOR, changed))
        self.slower = max(0.0, self.slower + _log_odds(expected, expected / _FACTOR, changed))
        if max(self.faster, self.slower) < _LIMIT:
            return 1.0
        factor = _FACTOR if self.faster > self.slower else 1.0 / _FACTOR
        self.faster = self.slower = 0.0
        return factor


def _log_odds(expected: float, other: float, changed: bool) -> float:
    """How much better the other expectation explains what was seen."""
    if not changed:
        return expected - other
    # For tiny expectations the chance of a change is the expectation itself.
    return log(other / expected) if expected < 1e-9 else log(expm1(-other) / expm1(-expected))
