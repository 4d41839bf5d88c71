"""What share of the tuples still fits into the time that is left (RT §4.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_EXACT: Final = 1e-6


def largest_ratio(seconds: Callable[[float], float], available: float) -> float:
    """The largest share of the tuples with which a query ends in time; 0: not even its overhead fits.

    RT has epsilon = D / T. That holds without overhead and joins only: overhead does not shrink with the tuples, and
    the pairs of a join shrink with their square.

    Args:
        seconds: Seconds that the rest of the query takes with a share of its tuples; it rises with the share.
        available: Seconds until it is due.

    >>> round(largest_ratio(lambda ratio: 20 + 80 * ratio, 50), 3)
    0.375
    >>> round(largest_ratio(lambda ratio: 40 * ratio + 16 * ratio**2, 28), 3)
    0.57
    >>> largest_ratio(lambda ratio: 40 * ratio, 40), largest_ratio(lambda ratio: 20 + ratio, 10)
    (1.0, 0.0)
    """
    if seconds(1.0) <= available:
        return 1.0
    low, high = 0.0, 1.0
    if seconds(low) > available:
        return 0.0
    while high - low > _EXACT:
        middle = (low + high) / 2.0
        low, high = (middle, high) if seconds(middle) <= available else (low, middle)
    return low
