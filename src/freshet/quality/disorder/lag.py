"""How far one stream runs ahead of another (WU §3.2.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from freshet.quality.disorder.virtual_index import last_index


def lag(first: ArrayLike, second: ArrayLike, came_first: int, came_second: int) -> int:
    """The lag from one stream to another: how many rows of the first came beyond the one that stands for the latest
    row of the second, disorder within the streams aside (WU Def. 3.2.6). Below 0, the first one runs behind.

    The virtual index of a row is final only when as many rows have come after it as the scrambling factor says, and so
    is a lag: give all rows that are known, and how many of them had come at the moment.

    Args:
        first: Keys of the first stream, in the order in which they came.
        second: Keys of the second stream.
        came_first: Number of rows of the first stream that had come at the moment.
        came_second: Number of rows of the second stream that had come; at least 1.

    >>> lag([63, 63, 66, 62, 64, 68, 67], [63, 65, 68, 62], 3, 2)
    0
    """
    stands_for = np.sort(np.asarray(second, np.int64))[came_second - 1]
    return came_first - last_index(first, int(stands_for))
