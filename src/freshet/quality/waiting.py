"""What waits in front of a query."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from freshet.quality.freshness import staleness_probability


@dataclass(frozen=True, slots=True)
class QueueLength:
    """What waits in one queue. Tuples in progress count, too: they have not departed either.

    Args:
        rows: Number of tuples.
        bytes: Their bytes.
        since: Arrival of the oldest; ignored if there are no rows.
        selectivity: Output tuples per tuple of this queue: the product over the operators after it (FAS §2).
    """

    rows: int
    bytes: int
    since: float
    selectivity: float = 1.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits in all queues of a query.

    Args:
        rows: Number of tuples.
        bytes: Their bytes.
        since: Arrival of the oldest one; None if nothing waits.
        probability: Probability that at least one of them will be part of the output (FAS §4.2). It means nothing if
            nothing waits.

    >>> Waiting.in_queues([QueueLength(1, 80, since=7.0, selectivity=0.5), QueueLength(2, 160, 5.0, 0.5)])
    Waiting(rows=3, bytes=240, since=5.0, probability=0.875)
    >>> Waiting.in_queues([QueueLength(0, 0, since=float("inf"))])
    Waiting(rows=0, bytes=0, since=None, probability=1.0)
    """

    rows: int = 0
    bytes: int = 0
    since: float | None = None
    probability: float = 1.0

    @staticmethod
    def in_queues(queues: Iterable[QueueLength]) -> Waiting:
        """Sums up queues of one query; tuples match independently of each other."""
        rows = size = 0
        since, none_matches = math.inf, 1.0
        for queue in queues:
            if queue.rows > 0:
                rows += queue.rows
                size += queue.bytes
                since = min(since, queue.since)
                none_matches *= 1.0 - staleness_probability(queue.selectivity, queue.rows)
        return Waiting(rows, size, since, 1.0 - none_matches) if rows else Waiting()


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the windows, joins and aggregates of a query remember.

    Args:
        rows: Number of rows of their states.
        bytes: Their bytes.
        watermark: How far event time has come in them, in seconds; None if unknown.
    """

    rows: int = 0
    bytes: int = 0
    watermark: float | None = None
