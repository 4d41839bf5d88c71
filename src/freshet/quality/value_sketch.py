"""What the tuples at an edge are worth lately, to cut the least of them off."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from typing import Final

from freshet.model.scheduling.unit import Worths

_TRAINS: Final = 4
"""Number of trains that it remembers."""
_TOLERANCE: Final = 0.1
"""Share by which the part that is kept may differ from the wanted one before it is cut elsewhere."""


class ValueSketch:
    """The values of the last trains, each by its values at evenly spaced ranks.

    >>> sketch = ValueSketch()
    >>> sketch.add(Worths("q.filter_1", tuple(float(value) for value in range(1, 11)), 1000))
    >>> sketch.cut(0.3)
    (8.0, 1.0)
    >>> sketch.cut(0.35), sketch.share(7.0, 0.5)
    ((7.0, 0.5), 0.35)
    >>> sketch.fits(7.0, 0.5, 0.36), sketch.fits(7.0, 0.5, 0.7)
    (True, False)
    """

    def __init__(self) -> None:
        self._trains: deque[Worths] = deque(maxlen=_TRAINS)

    def add(self, worths: Worths) -> None:
        """Takes the values of a train."""
        self._trains.append(worths)

    def cut(self, ratio: float) -> tuple[float, float]:
        """Where to cut so that this share is kept, the least values first: the value at the cut, and the share of the
        tuples of exactly that value to keep."""
        weights: dict[float, float] = {}
        for values, each in ((train.values, train.rows / len(train.values)) for train in self._trains):
            for value in values:
                weights[value] = weights.get(value, 0.0) + each
        left = ratio * sum(weights.values())
        for value in sorted(weights, reverse=True):
            if weights[value] >= left * (1 - 1e-12):
                return value, min(1.0, left / weights[value])
            left -= weights[value]
        return 0.0, 1.0

    def share(self, bound: float, ties: float) -> float:
        """The share of the remembered tuples that a cut keeps."""
        kept = rows = 0.0
        for train in self._trains:
            values, number = train.values, len(train.values)
            low, high = bisect_left(values, bound), bisect_right(values, bound)
            kept += train.rows * ((number - high) + ties * (high - low)) / number
            rows += train.rows
        return kept / rows if rows else 1.0

    def fits(self, bound: float, ties: float, ratio: float) -> bool:
        """Whether a cut still keeps about the wanted share. Each other cut is an entry of the ledger."""
        return abs(self.share(bound, ties) - ratio) <= _TOLERANCE * ratio
