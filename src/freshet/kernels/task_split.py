"""Whether the tuples of a sliding aggregate are merged in one task or in parts, as far as this is known without Spark.

Such an aggregate remembers panes, and its state may hold several panes of the same stretch and group: they are merged
when a window closes. So as many tasks as there are cores can merge the tuples of a large train. Each task merges its
own part and does not read the state. In a second job, one task closes the windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from freshet.model import Operator

# Measured with 1,500,000 tuples and 1,000 groups: a train took 150 to 170 ms in one task, 50 ms of which are the job's
# own, and as long in two parts with a second job.
_KERNEL_SECONDS: Final = 0.07e-6
OVERHEAD: Final = 0.05
"""Seconds that a second job takes."""


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


def rows_for_parts(cores: int) -> int | None:
    """The number of tuples from which on parts are quicker, for one query; None: they never are.

    >>> rows_for_parts(1) is None, parts_pay(rows_for_parts(2), 2), parts_pay(rows_for_parts(2) - 1, 2)
    (True, True, False)
    """
    return None if cores < 2 else math.floor(OVERHEAD / (_KERNEL_SECONDS * (1.0 - 1.0 / cores))) + 1
