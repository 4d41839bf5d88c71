"""Whether the work of a fold is divided between tasks, as far as this is known without Spark.

There are two ways. The state of a fold with keys can lie in parts, by key: each resident keeps one part, and runs the
tuples of its keys. That pays if there are many groups or partners, and trains are large.

If a sliding aggregate has few groups, the tuples of a large train are merged in parts instead, whatever their keys.
Such an aggregate remembers panes, and its state may hold several panes of the same stretch and group: they are merged
when a window closes. So as many tasks as there are cores can merge the tuples of a large train. Each task merges its
own part and does not read the state. In a second job, one task closes the windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from freshet.model import Operator
from freshet.model.names import MOST_PARTS

# Measured with 1,500,000 tuples and 1,000 groups: a train took 150 to 170 ms in one task, 50 ms of which are the job's
# own, and as long in two parts with a second job. Two residents were 0.64 times as fast as one with 100,000 tuples, and
# 1.5 times as fast with 500,000 (``freshet bench constants``).
_KERNEL_SECONDS: Final = 0.07e-6
OVERHEAD: Final = 0.05
"""Seconds that a second Spark job takes."""
RESIDENT_OVERHEAD: Final = 0.01
"""Seconds that it takes to hand work to residents a second time."""

# Measured: to find the tuples of one's own keys takes 20 ns for each tuple of the train. Panes take 50 ns for each
# tuple with 1,000 groups, 200 ns or more with a million. So the fold of two workers takes 0.75 of the time of one with
# few groups, and 0.55 with many; in a train of 100,000 tuples that is 1 ms or 40 ms. A second task and its file take
# some milliseconds.
KEYED_ROWS: Final = 100_000
"""Tuples of a train from which on a state is divided by key."""
KEYED_STATE: Final = 200_000
"""Rows of a state from which on it is divided by key."""
_SMALLER: Final = 8
"""A state is put together again if it, and the trains, are this number of times smaller."""


def parts_by_key(now: int, workers: int, rows: int, remembered: int) -> int:
    """The number of parts in which a state should lie.

    Once it lies in parts, it stays so until both state and trains have become much smaller: dividing it anew costs as
    much as reading it from the log.

    Args:
        now: Number of parts in which it lies.
        workers: Number of workers that can keep a part each.
        rows: Number of tuples of the next train.
        remembered: Number of rows of the state.

    >>> parts_by_key(1, 4, 1_000_000, 1_000_000), parts_by_key(1, 4, 1000, 1_000_000), parts_by_key(1, 4, 1_000_000, 9)
    (4, 1, 1)
    >>> parts_by_key(2, 2, 1000, 1_000_000), parts_by_key(2, 2, 1_000_000, 0), parts_by_key(2, 2, 1000, 1000)
    (2, 2, 1)
    >>> parts_by_key(4, 2, 1000, 1_000_000), parts_by_key(4, 1, 1000, 1_000_000)
    (2, 1)
    """
    workers = min(workers, MOST_PARTS)
    least = (KEYED_ROWS, KEYED_STATE)
    if now > 1:
        pays = rows * _SMALLER >= least[0] or remembered * _SMALLER >= least[1]
    else:
        pays = rows >= least[0] and remembered >= least[1]
    return workers if pays and workers > 1 else 1


def parted_at(operators: Sequence[Operator]) -> int | None:
    """The place of the aggregate up to which a chain can run in parts; None: it cannot run in parts.

    >>> from freshet.model import Filter, Panes, Lifetime
    >>> panes = Panes("q.panes", Lifetime("ts", 60), 60)
    >>> parted_at([Filter("f", "a"), panes, Filter("g", "b")]), parted_at([Filter("f", "a")])
    (1, None)
    """
    place = next((place for place, each in enumerate(operators) if each.remembers), -1)
    return place if place >= 0 and operators[place].split == "parts" else None


def parts_pay(rows: int, cores: int, queries: int = 1, overhead: float = OVERHEAD) -> bool:
    """Whether parts are quicker than a task for each query.

    Args:
        rows: Number of tuples of the train.
        cores: Number of cores of the cluster.
        queries: Number of queries with a state that run in the same step.
        overhead: Seconds that a second job takes.

    >>> parts_pay(500_000, 2), parts_pay(2_000_000, 2), parts_pay(2_000_000, 2, queries=2), parts_pay(800_000, 64)
    (False, True, False, True)
    """
    alone = rows * _KERNEL_SECONDS * math.ceil(queries / cores)
    return queries * (overhead + rows * _KERNEL_SECONDS / cores) < alone


def rows_for_parts(cores: int, overhead: float = OVERHEAD) -> int | None:
    """The number of tuples from which on parts are quicker, for one query; None: they never are.

    Args:
        cores: Number of cores of the cluster.
        overhead: Seconds that a second job takes.

    >>> rows_for_parts(1) is None, parts_pay(rows_for_parts(2), 2), parts_pay(rows_for_parts(2) - 1, 2)
    (True, True, False)
    """
    return None if cores < 2 else math.floor(overhead / (_KERNEL_SECONDS * (1.0 - 1.0 / cores))) + 1
