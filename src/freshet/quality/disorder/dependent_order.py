"""How the order by one column depends on the order by another, as rows come."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from freshet.quality.disorder.heights import Climb, KeyHeights
from freshet.quality.disorder.integer_sketch import IntegerSketch

Ints = NDArray[np.int64]


def _none() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class DependentOrder:
    """The dependent scrambling factor of a stream (WU Def. 3.4.1). Rows above the mark of the first column wait, at
    most as many as its scrambling factor. As the mark passes them they leave, sorted by the first column and then by
    the second, and it is counted how far the second is out of order there. It never changes itself: :meth:`after` gives
    another one, and batches change nothing.

    Args:
        first: What the waiting rows have in the first column.
        second: The same in the second column.
        heights: How high the second column has come in the rows that left.
        rows_back: How many of these come between each and the first one that is equal or greater in the second column.

    >>> order = DependentOrder().after(np.array([2, 1, 3]), np.array([7, 8, 5]), mark=2)
    >>> order.rows, order.factor()
    (2, 1)
    >>> order.after(np.array([4]), np.array([9]), mark=4).factor()
    2
    """

    first: Ints = field(default_factory=_none)
    second: Ints = field(default_factory=_none)
    heights: KeyHeights = field(default_factory=KeyHeights)
    rows_back: IntegerSketch = field(default_factory=IntegerSketch)

    @property
    def rows(self) -> int:
        """Number of rows that are counted."""
        return self.heights.rows

    def after(self, first: Ints, second: Ints, mark: int | None) -> DependentOrder:
        """The same with some more rows.

        Args:
            first: Their keys, without those of rows that came past the mark.
            second: What they have in the other column.
            mark: The mark of the first column after them; None: there is none.
        """
        one, other = np.concatenate([self.first, first]), np.concatenate([self.second, second])
        order = np.lexsort((other, one))
        one, other = one[order], other[order]
        leave = 0 if mark is None else int(np.searchsorted(one, mark, side="right"))
        climb = Climb(self.heights, other[:leave])
        sketch = self.rows_back.plus(climb.displacements()) if leave else self.rows_back
        return DependentOrder(one[leave:], other[leave:], climb.heights, sketch)

    def factor(self, share: float = 1.0) -> int:
        """The dependent scrambling factor that this share of the rows does not exceed: never too low, and at most about
        a 25th above the least such. 0 if no row was counted."""
        return self.rows_back.quantile(share) if self.rows_back.counts else 0
