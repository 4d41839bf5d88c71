"""How far the rows of a stream come out of order (WU §3.2.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

KeyNumbers = NDArray[np.int64]


def displacements(keys: ArrayLike) -> KeyNumbers:
    """For each row, by how many rows it comes after the first one with a key that is equal or greater.

    >>> displacements([1, 4, 2, 4, 3]).tolist()
    [0, 0, 1, 2, 3]
    """
    found = np.asarray(keys, np.int64)
    heights = np.maximum.accumulate(found) if len(found) else found
    after: KeyNumbers = np.arange(len(found)) - np.searchsorted(heights, found)
    return after


def distances(keys: ArrayLike) -> KeyNumbers:
    """For each row, how far its key lies behind the greatest key before it; 0: it does not.

    >>> distances([1, 4, 2, 4, 3]).tolist()
    [0, 0, 2, 0, 1]
    """
    found = np.asarray(keys, np.int64)
    behind: KeyNumbers = (np.maximum.accumulate(found) if len(found) else found) - found
    return behind


def scrambling_factor(keys: ArrayLike) -> int:
    """The least k so that no row comes more than k rows after one with a key that is equal or greater
    (WU Def. 3.2.2). It is at least the multiplicity minus 1.

    >>> scrambling_factor([1, 2, 3]), scrambling_factor([1, 1, 2, 2]), scrambling_factor([2, 3, 1])
    (0, 1, 2)
    """
    found = displacements(keys)
    return int(found.max()) if len(found) else 0
