"""Intervals that ended with a change, kept in a few classes of like length."""

from __future__ import annotations

from itertools import combinations
from math import log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CLASSES: Final = 3
"""Classes of length that are kept of an element."""
_GONE: Final = 1e-6
"""A class with fewer intervals than this is as good as forgotten."""


class Seen(NamedTuple):
    """What polls have told; column i of every array is element i.

    Args:
        changes: Polls that found a change, a row for each class of length.
        changed_time: Time of the intervals that ended with one, a row for each class.
        quiet_time: Time without a change.
        dated: Changes of known time.
        trust: Weight of the prior.
    """

    changes: Floats
    changed_time: Floats
    quiet_time: Floats
    dated: Floats
    trust: Floats

    @property
    def gaps(self) -> Floats:
        """Length of the intervals that ended with a change, a row for each class; 0 if there are none.

        >>> nothing = np.zeros(1)
        >>> Seen(np.array([[2.0], [0.0]]), np.array([[3.0], [0.0]]), nothing, nothing, nothing).gaps.tolist()
        [[1.5], [0.0]]
        """
        return np.divide(self.changed_time, self.changes, out=np.zeros_like(self.changes), where=self.changes > 0.0)


def sort_in(counts: list[float], times: list[float], length: float) -> None:
    """Adds an interval to the classes, in place.

    A free class takes it. If there is none, the two classes that are most alike become one (Ward's measure of the
    logarithms), with the geometric mean of their lengths: a long pause that is nearly forgotten must not stretch the
    class that takes it in.

    Args:
        counts: Number of intervals in each class.
        times: Sum of the lengths in each class.
        length: Of the interval, more than 0.

    >>> counts, times = [40.0, 1.0, 0.0], [80.0, 600.0, 0.0]
    >>> sort_in(counts, times, 2.0)
    >>> sort_in(counts, times, 2.0)
    >>> counts, times
    ([41.0, 1.0, 1.0], [82.0, 600.0, 2.0])
    """
    for place, count in enumerate(counts):
        if count < _GONE or times[place] <= 0.0:
            counts[place], times[place] = 1.0, length
            return
    all_counts, lengths = [*counts, 1.0], [*(time / count for time, count in zip(times, counts, strict=True)), length]
    logs = [log(each) for each in lengths]
    _, kept, other = min(
        (all_counts[a] * all_counts[b] / (all_counts[a] + all_counts[b]) * (logs[a] - logs[b]) ** 2, a, b)
        for a, b in combinations(range(len(logs)), 2)
    )
    count = all_counts[kept] + all_counts[other]
    middle = lengths[kept] * (lengths[other] / lengths[kept]) ** (all_counts[other] / count)
    counts[kept], times[kept] = count, count * middle
    if other < len(counts):
        counts[other], times[other] = 1.0, length
