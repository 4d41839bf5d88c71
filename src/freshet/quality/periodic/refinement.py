"""What share of the tuples still fits into the time that is left (RT §4.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

_EXACT: Final = 1e-6
_MADE_UP: Final = 0.5
"""Share of its time that an instance can give up for those before it."""


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


def latest_end(due: float, others: Sequence[tuple[float, float]]) -> float:
    """When an instance must have ended, so that those that wait behind it need not give up more than half of their
    time.

    RT §4.4 has each instance make up for its own error, by its pseudo-deadline. But those behind it can do so at less
    of a loss: levels are set anew for all of them when it has ended. Only the last ones before a deadline have nobody
    behind them.

    Args:
        due: When its own answer is due.
        others: When the answers of the others are due, and for how many seconds they are to run.

    >>> latest_end(7.0, [(7.0, 2.0), (7.0, 3.0)]), latest_end(7.0, []), latest_end(7.0, [(9.0, 6.0), (9.5, 2.0)])
    (4.5, 7.0, 5.5)
    """
    behind = sorted((max(due, other), seconds) for other, seconds in others)
    taken = accumulate(seconds for _, seconds in behind)
    return min([due, *(other - _MADE_UP * sum_ for (other, _), sum_ in zip(behind, taken, strict=True))])
