"""When an element that failed is polled again."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class BackOff:
    """Doubles the wait with every failure in a row, up to a maximum, and moves it at random by up to a quarter, so
    that elements that failed together do not come back together. It never waits less than the other side asked for.

    Args:
        first: Seconds after the first failure.
        longest: Maximum number of seconds.

    >>> back_off = BackOff(1.0, 60.0, random.Random(1))
    >>> [round(back_off.seconds(failures)) for failures in (1, 2, 3, 30)]
    [1, 2, 4, 49]
    >>> back_off.seconds(1, retry_after=120.0) >= 120.0
    True
    """

    first: float = 5.0
    longest: float = 3600.0
    randomness: random.Random = field(default_factory=random.Random)

    def seconds(self, failures: int, retry_after: float | None = None) -> float:
        """How long to wait after this many failures in a row."""
        wait = min(self.longest, self.first * 2.0 ** min(failures - 1, 60))
        wait *= self.randomness.uniform(0.75, 1.0)
        return max(wait, retry_after or 0.0)
