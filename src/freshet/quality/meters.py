"""The meters of a run: all queries, streams, workers and decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from freshet.model import ChainResult, Promises
from freshet.quality.freshness import mean_freshness
from freshet.quality.qos import overall
from freshet.quality.query_meter import QueryMeter
from freshet.quality.recent import Seen
from freshet.quality.response import ResponseMeter
from freshet.quality.share import DecisionMeter, WorkerMeter
from freshet.quality.statistics import OperatorStatistics, OverheadStatistics
from freshet.quality.waiting import Memory, Waiting

Operators = Mapping[str, Mapping[str, OperatorStatistics]]
"""Statistics by query and name of the operator."""


@dataclass(frozen=True, slots=True)
class StreamCounts:
    """What the log has counted for a stream since the stream exists."""

    tuples: int = 0
    late: int = 0
    dead: int = 0
    heartbeats: int = 0
    bytes: int = 0


class Meters:
    """Holds the meters of a run and sums them up. It has no clock: every call says its time, in seconds.

    Args:
        start: Begin of the run.
        workers: How many units can run at once.

    >>> from freshet.model import Chain, ChainResult
    >>> meters = Meters(start=0.0)
    >>> meters.add_query("big", now=0.0)
    >>> meters.record("big", ChainResult(Chain((0,), ()), 1, (), (4.0,)), departure=6.0, rows_in=100)
    >>> meters.wait("big", Waiting(rows=3, bytes=24, since=9.0, probability=1.0))
    >>> big = meters.snapshot(now=10.0)["queries"]["big"]
    >>> big["freshness"], big["waiting"], big["response"]["mean_s"], big["throughput"]["in_per_s"]
    (0.7, 3, 2.0, 10.0)
    """

    def __init__(self, start: float, workers: int = 1) -> None:
        self.start = start
        self.queries: dict[str, QueryMeter] = {}
        self._workers = WorkerMeter(start, workers)
        self._decisions = DecisionMeter(start)
        self._streams: dict[str, StreamCounts] = {}

    def begin(self, now: float) -> None:
        """The run begins now: what was before it counts for nobody."""
        self.start = now
        self._workers.start = self._decisions.start = now
        for name, meter in self.queries.items():
            if meter.state == "active":
                self.queries[name] = QueryMeter(now, meter.promises, meter.streams)

    def add_query(self, name: str, now: float, promises: Promises | None = None, streams: Iterable[str] = ()) -> None:
        """A query begins; ``streams`` are what it reads."""
        self.queries[name] = QueryMeter(now, promises, streams)

    def drop_query(self, name: str) -> QueryMeter:
        """A query ends; returns its meter for a last report."""
        return self.queries.pop(name)

    def promise(self, name: str, promises: Promises) -> None:
        """Something else was promised to a query."""
        self.queries[name].promise(promises)

    def quarantine(self, name: str, reason: str) -> None:
        """A query was set aside; what waits for it goes on making it stale."""
        meter = self.queries[name]
        meter.state, meter.reason = "quarantined", reason

    def hold(self, name: str, reason: str | None) -> None:
        """A query is held back, because its output takes nothing now; None: it is not any more."""
        self.queries[name].held = reason

    def record(self, query: str, result: ChainResult, departure: float, *, rows_in: int = 0, ends: bool = True) -> None:
        """One chain of a query was committed; see :meth:`QueryMeter.record`."""
        self.queries[query].record(result, departure, rows_in=rows_in, ends=ends)

    def wait(self, query: str, waiting: Waiting) -> None:
        """What waits for a query now; said before a snapshot, it holds until it is said again."""
        self.queries[query].waiting = waiting

    def remember(self, query: str, memory: Memory) -> None:
        """What the states of a query hold now; like :meth:`wait`."""
        self.queries[query].memory = memory

    def count(self, stream: str, counts: StreamCounts) -> None:
        """What the log has counted for a stream by now."""
        self._streams[stream] = counts

    def source_failed(self, stream: str, since: float) -> None:
        """The source of a stream failed: from then on what reads it, also through other queries, is not fresh.

        >>> meters = Meters(start=0.0)
        >>> meters.add_query("big", now=0.0, streams=["s"])
        >>> meters.add_query("huge", now=0.0, streams=["big"])
        >>> meters.source_failed("s", since=4.0)
        >>> {name: query["freshness"] for name, query in meters.snapshot(now=10.0)["queries"].items()}
        {'big': 0.4, 'huge': 0.4}
        """
        behind = {stream}
        while new := {name for name, meter in self.queries.items() if behind & {*meter.streams} and name not in behind}:
            behind |= new
        for name in behind & self.queries.keys():
            meter = self.queries[name]
            meter.blind = since if meter.blind is None else min(meter.blind, since)

    def busy(self, seconds: float) -> None:
        """A worker ran a unit for so long."""
        self._workers.busy(seconds)

    def deciding(self, seconds: float) -> None:
        """A decision took so long."""
        self._decisions.decided(seconds)

    def snapshot(
        self,
        now: float,
        *,
        running: Iterable[float] = (),
        operators: Operators | None = None,
        overhead: OverheadStatistics | None = None,
    ) -> dict[str, Any]:
        """All meters as plain values that JSON can hold; what is not known is None, never NaN.

        Names that end in ``_s`` are seconds, in ``_per_s`` rates per second.

        Args:
            now: Time of the snapshot.
            running: Start times of the units that run now, so that a long unit shows as busy.
            operators: Statistics of the queries' operators.
            overhead: Statistics of the calls.

        Returns:
            ``time``, ``seconds``: now, and seconds since the start of the run.

            ``queries``: by name, each with

            - ``state`` (``active``, ``held back`` or ``quarantined``) and its ``reason``, ``weight``,
            - ``seconds`` since it was added, in this run,
            - ``tuples_in``: read from its streams, once for each path that reads them; ``tuples_out``: written,
            - ``errors``: evaluation errors that gave NULL,
            - ``late``, ``dead``: tuples of its streams that were set aside before any query, since the streams exist,
            - ``waiting``, ``bytes_waiting``: tuples and bytes in its queues; ``oldest_waiting_s``: age of the oldest,
            - ``state_rows``, ``state_bytes``: what its windows, joins and aggregates remember; ``watermark_lag_s``: how
              far event time in them is behind now (None: it has none, or it is not known yet),
            - ``freshness``: F(D) since it was added (FAS Eq. 2), what waits counted by its probability to match;
              ``freshness_exact``: whether no interval had to be interpolated,
            - ``response``: ``count``, ``mean_s``, ``p50_s``, ``p95_s``, ``p99_s``, ``max_s`` over output tuples
              (FAS Def. 1); ``recent_mean_s``, ``recent_p95_s`` over those of the last 5 to 10 s,
            - ``qos``: ``mean`` utility, ``count`` of output tuples and how many were ``late``, by the query's latency
              curve; None where it has none,
            - ``throughput``: ``in_per_s``, ``out_per_s`` over its life, ``recent_in_per_s``, ``recent_out_per_s``
              decayed over 10 s,
            - ``operators``: by name ``tuples_in``, ``tuples_out``, ``seconds``, and smoothed ``cost_s`` per tuple and
              ``selectivity``.

            ``total``: ``queries``, ``quarantined`` (how many), ``tuples_in``, ``tuples_out``, ``errors``,
            ``waiting``, ``bytes_waiting``, ``state_rows``, ``state_bytes`` summed over queries; ``oldest_waiting_s``
            over all of them; ``freshness`` (FAS Eq. 3), ``weighted_freshness`` (FAS §4.4), ``response`` over all
            output tuples, ``qos`` over the queries with a curve: ``average`` over queries, ``per_tuple`` over their
            output tuples, ``late``; None where no query has one.

            ``streams``: by name ``tuples``, ``late``, ``dead``, ``heartbeats``, ``bytes``.

            ``workers``: ``workers``, ``units`` finished, ``busy_s`` in them, ``busy_share``.

            ``decisions``: ``decisions``, ``deciding_s``, ``deciding_share``.

            ``overhead``: ``calls``, ``total_s``, ``per_call_s`` smoothed (None before the first call).
        """
        recent = {name: meter.recent.seen(now) for name, meter in self.queries.items()}
        queries = {
            name: self._query_snapshot(meter, now, recent[name], (operators or {}).get(name, {}))
            for name, meter in self.queries.items()
        }
        return {
            "time": now,
            "seconds": max(0.0, now - self.start),
            "queries": queries,
            "total": self._total(queries, recent.values()),
            "streams": {name: asdict(counts) for name, counts in self._streams.items()},
            "workers": {
                "workers": self._workers.workers,
                "units": self._workers.units,
                "busy_s": self._workers.seconds,
                "busy_share": self._workers.share(now, running),
            },
            "decisions": {
                "decisions": self._decisions.decisions,
                "deciding_s": self._decisions.seconds,
                "deciding_share": self._decisions.share(now),
            },
            "overhead": _overhead_snapshot(overhead or OverheadStatistics()),
        }

    def _query_snapshot(
        self, meter: QueryMeter, now: float, recent: Seen, operators: Mapping[str, OperatorStatistics]
    ) -> dict[str, Any]:
        counts = [self._streams[stream] for stream in meter.streams if stream in self._streams]
        return meter.snapshot(now, recent) | {
            "late": sum(count.late for count in counts),
            "dead": sum(count.dead for count in counts),
            "operators": {name: _operator_snapshot(statistics) for name, statistics in operators.items()},
        }

    def _total(self, queries: Mapping[str, Mapping[str, Any]], recent: Iterable[Seen]) -> dict[str, Any]:
        each = queries.values()
        response = ResponseMeter()
        for meter in self.queries.values():
            response.merge(meter.response)
        summed = ("tuples_in", "tuples_out", "errors", "waiting", "bytes_waiting", "state_rows", "state_bytes")
        freshness = [query["freshness"] for query in each]
        return {
            "queries": len(queries),
            "quarantined": sum(query["state"] == "quarantined" for query in each),
            **{key: sum(query[key] for query in each) for key in summed},
            "oldest_waiting_s": max(
                (age for query in each if (age := query["oldest_waiting_s"]) is not None), default=None
            ),
            "freshness": mean_freshness(freshness),
            "weighted_freshness": mean_freshness(freshness, [query["weight"] for query in each]),
            "response": response.times().snapshot() | Seen.together(recent).snapshot(),
            "qos": self._qos(),
        }

    def _qos(self) -> dict[str, Any] | None:
        meters = {name: meter.qos for name, meter in self.queries.items() if meter.qos is not None}
        if not meters:
            return None
        qos = overall(meters)
        return {"average": qos.average, "per_tuple": qos.per_tuple, "late": qos.late}


def _operator_snapshot(statistics: OperatorStatistics) -> dict[str, Any]:
    learned = statistics.learned
    return {
        "tuples_in": statistics.rows_in,
        "tuples_out": statistics.rows_out,
        "seconds": statistics.seconds,
        "cost_s": statistics.cost if learned else None,
        "selectivity": statistics.selectivity if learned else None,
    }


def _overhead_snapshot(overhead: OverheadStatistics) -> dict[str, Any]:
    per_call = overhead.seconds if overhead.calls else None
    return {"calls": overhead.calls, "total_s": overhead.total, "per_call_s": per_call}
