"""The figures of a query over the time between two looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from freshet.quality.query_meter import QueryMeter
from freshet.quality.waiting import Waiting


@dataclass(frozen=True, slots=True)
class IntervalTotals:
    """What the meters have counted for a query so far.

    Args:
        answers: Number of answers with a response time.
        seconds: Sum of their response times.
        tuples_out: Number of tuples that it has output.
        arrived: By stream that it reads, the number of tuples that have come.
    """

    answers: int = 0
    seconds: float = 0.0
    tuples_out: int = 0
    arrived: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, meter: QueryMeter, arrived: Mapping[str, int]) -> IntervalTotals:
        """What a query's meter has counted; ``arrived`` is what the log has counted for the streams that it reads."""
        seen = meter.response.seen()
        return cls(seen.count, seen.sum, meter.tuples_out, dict(arrived))

    def since(self, before: IntervalTotals) -> IntervalTotals:
        """What came after earlier totals. If the meter has begun anew since then, that is everything."""
        if self.answers < before.answers or self.tuples_out < before.tuples_out:
            before = IntervalTotals(arrived=before.arrived)
        return IntervalTotals(
            self.answers - before.answers,
            self.seconds - before.seconds,
            self.tuples_out - before.tuples_out,
            {name: count - before.arrived.get(name, count) for name, count in self.arrived.items()},
        )


@dataclass(frozen=True, slots=True)
class IntervalFigures:
    """What was observed of a query over an interval.

    Args:
        seconds: Length of the interval.
        observed: The figure of each measure; None: there was nothing to observe.
        arrivals: By stream that it reads, tuples that came per second.
    """

    seconds: float
    observed: Mapping[str, float | None]
    arrivals: Mapping[str, float] = field(default_factory=dict)


class IntervalMeter:
    """Means of a query's measures over the interval between two looks (MAV §4.7, §4.13).

    - **latency** is the mean response time of the answers of the interval, and at least the age of the oldest waiting
      tuple. Without that, a query that outputs nothing would look content (Segment in MAV Fig. 5).
    - **memory** is the mean of the bytes that wait in its queues, over time.
    - **throughput** is the number of output tuples per second. A query that was given nothing owes nothing.

    Args:
        start: Beginning of the first interval.
        totals: What the meters had counted then.

    >>> meter = IntervalMeter(start=0.0)
    >>> meter.wait(0.0, Waiting(rows=10, bytes=800, since=0.0))
    >>> meter.wait(1.0, Waiting(rows=5, bytes=400, since=0.5))
    >>> figures = meter.close(2.0, IntervalTotals(answers=4, seconds=2.0, tuples_out=4, arrived={"s": 20}))
    >>> figures.observed
    {'latency': 1.5, 'memory': 600.0, 'throughput': 2.0}
    >>> meter.close(4.0, IntervalTotals(answers=8, seconds=14.0, tuples_out=8, arrived={"s": 60})).arrivals
    {'s': 20.0}
    """

    __slots__ = ("_byte_seconds", "_start", "_told", "_totals", "_waiting")

    def __init__(self, start: float, totals: IntervalTotals | None = None) -> None:
        self._totals = totals or IntervalTotals()
        self._start = self._told = start
        self._waiting = Waiting()
        self._byte_seconds = 0.0

    def wait(self, now: float, waiting: Waiting) -> None:
        """Says what waits from now on. The mean of memory is exact if this is told whenever it changes."""
        self._pass(now)
        self._waiting = waiting

    def close(self, now: float, totals: IntervalTotals) -> IntervalFigures:
        """The figures of the interval that ends now; the next one begins."""
        self._pass(now)
        seconds = max(0.0, now - self._start)
        figures = self._figures(now, seconds, totals.since(self._totals))
        self._start, self._totals, self._byte_seconds = now, totals, 0.0
        return figures

    def _pass(self, now: float) -> None:
        self._byte_seconds += self._waiting.bytes * max(0.0, now - self._told)
        self._told = now

    def _figures(self, now: float, seconds: float, came: IntervalTotals) -> IntervalFigures:
        since = self._waiting.since
        ages = [] if since is None else [max(0.0, now - since)]
        means = [came.seconds / came.answers] if came.answers else []
        given = came.tuples_out or self._waiting.rows or any(came.arrived.values())
        observed = {
            "latency": max([*ages, *means], default=None),
            "memory": self._byte_seconds / seconds if seconds else float(self._waiting.bytes),
            "throughput": came.tuples_out / seconds if seconds and given else None,
        }
        arrivals = {name: count / seconds if seconds else 0.0 for name, count in came.arrived.items()}
        return IntervalFigures(seconds, observed, arrivals)
