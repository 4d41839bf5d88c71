"""Whether a join runs in one task or through a shuffle: what is known without Spark.

A join runs in one task, which reads what both sides remember. Where that is too much for one worker, or where so many
cores share the work that it is quicker, Spark's own join makes the pairs instead, each core those of its keys.
"""

from __future__ import annotations

import math
from typing import Final

from freshet.model import Join

MOST_BYTES: Final = 2**30
"""Bytes of a train and both states from which on a join goes through a shuffle, however many cores there are."""
# With four million remembered rows on two cores a train took 0.7 to 0.8 s in one task and 2.5 to 2.9 s through a
# shuffle: 0.17 us for a row, against 1 us of a core and about half a second for the plan and two more jobs.
_KERNEL_SECONDS: Final = 0.17e-6
_SHUFFLE_SECONDS: Final = 1e-6
_SHUFFLE_OVERHEAD: Final = 0.5


def why_never_shuffled(join: Join) -> str | None:
    """Why a join stays in one task at any size; None: it need not.

    >>> from freshet.model.operators import Lifetime
    >>> minute = Lifetime("ts", 60_000_000)
    >>> why_never_shuffled(Join("j", "inner", (minute, minute), ((), ()), ()))
    'no equal columns tell which core a tuple belongs to'
    """
    if join.kind == "left":
        return "a LEFT JOIN must know of all tuples at once which of them found no partner"
    return None if join.keys[0] else "no equal columns tell which core a tuple belongs to"


def pays(rows: int, size: int, cores: int, most_bytes: int = MOST_BYTES) -> bool:
    """Whether to shuffle: because one worker could not hold it, or because it is quicker.

    Args:
        rows: Tuples of the train and of the other side's state.
        size: Bytes of the train and both states.
        cores: Of the cluster.
        most_bytes: Bytes that one worker may hold.

    >>> pays(1_000_000, 50_000_000, 2), pays(40_000_000, 2_000_000_000, 2), pays(20_000_000, 900_000_000, 64)
    (False, True, True)
    """
    return size > most_bytes or _SHUFFLE_OVERHEAD + rows * _SHUFFLE_SECONDS / cores < rows * _KERNEL_SECONDS


def rows_that_pay(cores: int) -> int | None:
    """From how many tuples on a shuffle is quicker; None: never.

    >>> rows_that_pay(4) is None, pays(rows_that_pay(64), 0, 64), pays(rows_that_pay(64) - 1, 0, 64)
    (True, True, False)
    """
    gain = _KERNEL_SECONDS - _SHUFFLE_SECONDS / cores
    return None if gain <= 0.0 else math.floor(_SHUFFLE_OVERHEAD / gain) + 1
