"""How the order by one column depends on the order by another (WU §3.4.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from freshet.quality.disorder.scrambling import scrambling_factor


def dependent_scrambling(first: ArrayLike, second: ArrayLike) -> int:
    """The scrambling factor of the second column once the stream is sorted by the first (WU Def. 3.4.1). Rows that
    are equal in the first column are sorted by the second: of all orders this gives the least factor, and with it
    Th. 3.4.2 holds.

    >>> dependent_scrambling([1, 2, 3], [3, 2, 1]), dependent_scrambling([1, 1], [9, 2])
    (2, 0)
    """
    one, other = np.asarray(first, np.int64), np.asarray(second, np.int64)
    return scrambling_factor(other[np.lexsort((other, one))])
