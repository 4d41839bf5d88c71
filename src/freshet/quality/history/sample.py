"""A sample: what the meters said at one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class QuerySample(NamedTuple):
    """The meters of a query at one time. Most of them have grown since the start, so that a difference of two samples
    says what happened between them.

    Args:
        waiting: Number of tuples that wait: the most that a sample saw since the one before.
        fresh: Seconds for which its output was fresh, as far as known; None for a periodic query.
        answers: Number of answers with a response time.
        response: Their response times, added up.
        p95: 95th percentile of the response times since the sample before; None if there were no answers.
        rated: Number of answers with a utility.
        utility: Their utilities, added up.
        tuples_in: Number of tuples read.
        weight: Its importance at this time.
    """

    waiting: int
    fresh: float | None
    answers: int
    response: float
    p95: float | None
    rated: int
    utility: float
    tuples_in: int
    weight: float

    def after(self, earlier: QuerySample) -> QuerySample:
        """One sample for two: this one, with the greatest of what is measured between samples."""
        p95 = max((each for each in (earlier.p95, self.p95) if each is not None), default=None)
        return self._replace(waiting=max(earlier.waiting, self.waiting), p95=p95)


class MachineSample(NamedTuple):
    """What workers and policy have done since the start: seconds and numbers."""

    busy: float
    units: int
    deciding: float
    decisions: int


@dataclass(frozen=True, slots=True)
class RunSample:
    """A run at one time.

    Args:
        time: When.
        queries: By the name of the query.
        machine: What workers and policy have done.
        decision: Why a decision was made since the sample before; None if nobody knows.
    """

    time: float
    queries: Mapping[str, QuerySample]
    machine: MachineSample
    decision: str | None = None

    def after(self, earlier: RunSample) -> RunSample:
        """One sample for two, at the time of this one."""
        queries = {
            name: each if (before := earlier.queries.get(name)) is None else each.after(before)
            for name, each in self.queries.items()
        }
        return RunSample(self.time, queries, self.machine, self.decision or earlier.decision)
