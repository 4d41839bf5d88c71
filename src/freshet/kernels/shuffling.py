"""Whether a join runs in one task or through a shuffle, as far as this is known without Spark.

A join runs in one task, which reads the states of all its inputs. If that is too much for one worker, or if there are
enough cores to be quicker, Spark's own join makes the rows instead: each core makes the rows of its own keys.
"""

from __future__ import annotations

import math
from typing import Final

MOST_BYTES: Final = 2**30
"""Maximum number of bytes, of a train and all states, for a join in one task, however many cores there are."""
# Measured with four million remembered rows on two cores: a train took 0.7 to 0.8 s in one task, which is 0.17 us per
# row. A shuffle took 2.5 to 2.9 s: 1 us of a core per row, and about half a second for the plan and two more jobs.
_KERNEL_SECONDS: Final = 0.17e-6
_SHUFFLE_SECONDS: Final = 1e-6
_SHUFFLE_OVERHEAD: Final = 0.5


def pays(rows: int, size: int, cores: int, most_bytes: int = MOST_BYTES) -> bool:
    """Whether to shuffle: because it is too much for one worker, or because it is quicker.

    Args:
        rows: Number of tuples of the train and of the other inputs' states.
        size: Bytes of the train and all states.
        cores: Number of cores of the cluster.
        most_bytes: Maximum number of bytes that one worker may hold.

    >>> pays(1_000_000, 50_000_000, 2), pays(40_000_000, 2_000_000_000, 2), pays(20_000_000, 900_000_000, 64)
    (False, True, True)
    """
    return size > most_bytes or _SHUFFLE_OVERHEAD + rows * _SHUFFLE_SECONDS / cores < rows * _KERNEL_SECONDS


def rows_that_pay(cores: int) -> int | None:
    """The number of tuples from which on a shuffle is quicker; None: it never is.

    >>> rows_that_pay(4) is None, pays(rows_that_pay(64), 0, 64), pays(rows_that_pay(64) - 1, 0, 64)
    (True, True, False)
    """
    gain = _KERNEL_SECONDS - _SHUFFLE_SECONDS / cores
    return None if gain <= 0.0 else math.floor(_SHUFFLE_OVERHEAD / gain) + 1
