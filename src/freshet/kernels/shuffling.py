"""Whether a join runs in one task or through a shuffle, as far as this is known without Spark.

A join runs in one task. Its worker keeps the states of all its inputs, so the task pays for the new tuples alone. Only
if they are too large to be kept, the task reads them again. A shuffle moves all of them in every step: Spark's own join
makes the rows, and each core makes those of its own keys.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MOST_BYTES: Final = 2**30
"""Maximum number of bytes, of a train and all states, for a join in one task, however many cores there are."""
_KEPT_PER_BYTE: Final = 1.5
"""Memory that a worker needs to keep a byte of a state's segments, with its indexes."""
# Measured with 0.4 to 4 million remembered rows, in CPU time: a row of a train takes 0.6 to 1.5 us, with what it makes
# and the file; a remembered row that is read again, 0.12 to 0.2 us. With four million remembered rows on two cores, a
# shuffle took 2.5 to 2.9 s. ``freshet bench constants`` measures all three.
TRAIN_SECONDS: Final = 0.8e-6
"""Seconds of one task for a tuple of the train."""
STATE_SECONDS: Final = 0.16e-6
"""Seconds of one task for a remembered tuple that it reads again, and makes indexes of."""
SHUFFLE_SECONDS: Final = 1e-6
"""Seconds of a core for a tuple, new or remembered, that goes through a shuffle."""
SHUFFLE_OVERHEAD: Final = 0.5
"""Seconds for the plan of a shuffle, and its two more jobs."""


class JoinSize(NamedTuple):
    """What a join looks at in a step.

    Args:
        rows: Number of tuples of the train.
        remembered: Number of tuples of the other inputs' states.
        bytes: Bytes of the train and all states.
    """

    rows: int
    remembered: int
    bytes: int


def pays(size: JoinSize, cores: int, kept: int, most_bytes: int = MOST_BYTES) -> bool:
    """Whether to shuffle: because it is too much for one worker, or because it is quicker.

    Args:
        size: Of the step.
        cores: Number of cores of the cluster.
        kept: Memory in which a worker keeps states.
        most_bytes: Maximum number of bytes that one task may read.

    >>> size = JoinSize(rows=1000, remembered=20_000_000, bytes=600_000_000)
    >>> pays(size, 64, kept=2**30), pays(size, 64, kept=2**28), pays(size, 2, kept=2**28)
    (False, True, False)
    >>> pays(size._replace(bytes=2**31), 2, kept=2**30), pays(size._replace(bytes=2**31), 2, kept=2**32)
    (True, False)
    """
    is_kept = size.bytes <= most_kept(kept)
    alone = size.rows * TRAIN_SECONDS + (0 if is_kept else size.remembered) * STATE_SECONDS
    shuffled = SHUFFLE_OVERHEAD + (size.rows + size.remembered) * SHUFFLE_SECONDS / cores
    return shuffled < alone or (not is_kept and size.bytes > most_bytes)


def most_kept(kept: int) -> int:
    """Bytes of segments whose rows a worker can keep.

    >>> most_kept(0), most_kept(3 * 2**20) // 2**20
    (0, 2)
    """
    return int(kept / _KEPT_PER_BYTE)


def rows_that_pay(cores: int, kept: bool) -> int | None:
    """The number of tuples from which on a shuffle is quicker; None: it never is.

    Args:
        cores: Number of cores of the cluster.
        kept: Whether the worker keeps the states. Then these are new tuples, and otherwise remembered ones.

    >>> rows_that_pay(4, kept=False) is None, rows_that_pay(64, kept=False), rows_that_pay(64, kept=True)
    (True, 3463204, 637451)
    >>> size = JoinSize(0, 3_463_204, 2**29)
    >>> pays(size, 64, kept=0), pays(size._replace(remembered=3_463_203), 64, kept=0)
    (True, False)
    """
    gain = (TRAIN_SECONDS if kept else STATE_SECONDS) - SHUFFLE_SECONDS / cores
    return None if gain <= 0.0 else math.floor(SHUFFLE_OVERHEAD / gain) + 1
