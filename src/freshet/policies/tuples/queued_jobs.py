"""Jobs that wait: one for each queue, in the order in which they are to run, and in that of their last moments."""

from __future__ import annotations

import math
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from freshet.policies.tuples.fragments import LEAST_COST


class TupleJob(NamedTuple):
    """The work on the batch at the head of a queue."""

    number: int
    """The operator that the tuples wait for."""
    nodes: tuple[int, ...]
    rows: int
    profit: float
    cost: float
    due: float
    """When it must have ended."""

    @property
    def density(self) -> float:
        """Profit per second."""
        return self.profit / max(self.cost, LEAST_COST)

    @property
    def latest(self) -> float:
        """When it must begin."""
        return self.due - self.cost


class QueuedJobs:
    """The jobs that wait, with the best of them and the one that must begin first.

    Args:
        watched: Whether their last moments are watched.

    >>> jobs = QueuedJobs(watched=True)
    >>> jobs.put(TupleJob(0, (0,), 1, 5.0, 1.0, 9.0), (2.0,)); jobs.put(TupleJob(1, (1,), 1, 5.0, 1.0, 4.0), (3.0,))
    >>> jobs.best().number, jobs.most_urgent().number
    (0, 1)
    >>> jobs.remove(0); jobs.best().number
    1
    """

    def __init__(self, watched: bool) -> None:
        self._watched = watched
        self.known: dict[int, TupleJob] = {}
        self._ranked: list[tuple[tuple[float, ...], int, TupleJob]] = []
        self._urgent: list[tuple[float, int, TupleJob]] = []
        self.operations = 0
        """Comparisons."""
        self._lowest, self._highest = math.inf, 0.0

    def __iter__(self) -> Iterator[TupleJob]:
        return (job for _, number, job in sorted(self._ranked) if self.known.get(number) is job)

    def __len__(self) -> int:
        return len(self.known)

    def put(self, job: TupleJob, key: tuple[float, ...]) -> None:
        """Takes a job in, in the place of an earlier one of its queue. The one with the least key is the best."""
        self.known[job.number] = job
        if job.profit > 0.0:
            self._lowest, self._highest = min(self._lowest, job.density), max(self._highest, job.density)
        heappush(self._ranked, (key, job.number, job))
        self.operations += 1 + len(self._ranked).bit_length()
        if self._watched and job.latest < math.inf:
            heappush(self._urgent, (job.latest, job.number, job))
            self.operations += len(self._urgent).bit_length()

    @property
    def spread(self) -> float:
        """The highest density of all jobs so far that earned something, over the lowest (k of Baruah et al.)."""
        return self._highest / self._lowest if self._highest else 1.0

    def remove(self, number: int) -> None:
        """Takes a job out."""
        self.known.pop(number, None)

    def best(self) -> TupleJob | None:
        """The job to run next."""
        ranked = self._ranked
        while ranked and self.known.get(ranked[0][1]) is not ranked[0][2]:
            heappop(ranked)
            self.operations += len(ranked).bit_length()
        return ranked[0][2] if ranked else None

    def most_urgent(self) -> TupleJob | None:
        """The job that must begin first."""
        urgent = self._urgent
        while urgent and self.known.get(urgent[0][1]) is not urgent[0][2]:
            heappop(urgent)
            self.operations += len(urgent).bit_length()
        return urgent[0][2] if urgent else None

    def clear(self) -> None:
        """Takes all jobs out."""
        self.known.clear()
        self._ranked.clear()
        self._urgent.clear()
