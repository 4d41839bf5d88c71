"""Where rows would stand if their stream were sorted (WU §3.2.3.2). Indices count from 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Indices = NDArray[np.int64]


def virtual_index(keys: ArrayLike) -> tuple[Indices, Indices]:
    """The least and the greatest virtual index of each row: rows with equal keys share theirs (WU Def. 3.2.5).

    >>> least, greatest = virtual_index([63, 63, 66, 62])
    >>> least.tolist(), greatest.tolist()
    ([2, 2, 4, 1], [3, 3, 4, 1])
    """
    found = np.asarray(keys, np.int64)
    ordered = np.sort(found)
    return np.searchsorted(ordered, found) + 1, np.searchsorted(ordered, found, side="right")


def last_index(keys: ArrayLike, key: int) -> int:
    """The greatest virtual index of the next-of-kin of a key: of the rows with the greatest key that is at most as
    great (WU Def. 3.2.3). 0: there is none.

    >>> last_index([62, 64, 64, 68], 65), last_index([62, 64], 61)
    (3, 0)
    """
    return int(np.count_nonzero(np.asarray(keys, np.int64) <= key))


def multiplicity(keys: ArrayLike) -> int:
    """The greatest number of rows with the same key (WU §3.4.1).

    >>> multiplicity([1, 2, 2, 3]), multiplicity([])
    (2, 0)
    """
    _, counts = np.unique(np.asarray(keys, np.int64), return_counts=True)
    return int(counts.max()) if len(counts) else 0
