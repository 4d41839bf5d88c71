"""The meters of a run: all queries, streams, workers and decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from freshet.model import ChainResult, Missing, Promises
from freshet.model.scheduling.unit import NOTHING_KEPT, KeptCounts
from freshet.quality.freshness import mean_freshness
from freshet.quality.qos import overall
from freshet.quality.query_meter import QueryMeter
from freshet.quality.recent import ResponseCounts
from freshet.quality.response import ResponseMeter
from freshet.quality.share import DecisionMeter, WorkerMeter
from freshet.quality.snapshots import (
    OperatorSnapshot,
    OverheadSnapshot,
    QuerySnapshot,
    Snapshot,
    StreamSnapshot,
    TotalQosSnapshot,
    TotalSnapshot,
)
from freshet.quality.statistics import OperatorStatistics, OverheadStatistics
from freshet.quality.waiting import Remembered, Waiting

QueryOperators = Mapping[str, Mapping[str, OperatorStatistics]]
"""Statistics by query and name of the operator."""


@dataclass(frozen=True, slots=True)
class StreamCounts:
    """What the log has counted for a stream since the stream was created."""

    tuples: int = 0
    late: int = 0
    dead: int = 0
    heartbeats: int = 0
    bytes: int = 0

    def snapshot(self) -> StreamSnapshot:
        """The counts as plain values, for reports."""
        return {
            "tuples": self.tuples,
            "late": self.late,
            "dead": self.dead,
            "heartbeats": self.heartbeats,
            "bytes": self.bytes,
        }


class Meters:
    """Holds the meters of a run and sums them up. It has no clock: every call gives its time, in seconds.

    Args:
        start: Beginning of the run.
        workers: Maximum number of units that run at once.

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
        """Starts the run now: nothing from before counts."""
        self.start = now
        self._workers.start = self._decisions.start = now
        for name, meter in self.queries.items():
            if meter.state == "active":
                self.queries[name] = QueryMeter(now, meter.promises, meter.streams)

    def add_query(self, name: str, now: float, promises: Promises | None = None, streams: Iterable[str] = ()) -> None:
        """Adds a query; ``streams`` are what it reads."""
        self.queries[name] = QueryMeter(now, promises, streams)

    def drop_query(self, name: str) -> QueryMeter:
        """Drops a query; returns its meter for a last report."""
        return self.queries.pop(name)

    def promise(self, name: str, promises: Promises) -> None:
        """Changes what was promised to a query."""
        self.queries[name].promise(promises)

    def quarantine(self, name: str, reason: str) -> None:
        """Marks a query as quarantined; what waits for it continues to make it stale."""
        meter = self.queries[name]
        meter.state, meter.reason = "quarantined", reason

    def hold(self, name: str, reason: str | None) -> None:
        """Marks a query as held back, because its output takes nothing in; None ends that."""
        self.queries[name].held = reason

    def record(self, query: str, result: ChainResult, departure: float, *, rows_in: int = 0, ends: bool = True) -> None:
        """Records one committed chain of a query; see :meth:`QueryMeter.record`."""
        self.queries[query].record(result, departure, rows_in=rows_in, ends=ends)

    def miss(self, entry: Missing) -> None:
        """Records that the answers of a query lack tuples."""
        self.queries[entry.query].miss(entry)

    def wait(self, query: str, waiting: Waiting) -> None:
        """Sets what waits for a query; call it before a snapshot, it holds until the next call."""
        self.queries[query].wait(waiting)

    def remember(self, query: str, memory: Remembered) -> None:
        """Sets what the states of a query hold; like :meth:`wait`."""
        self.queries[query].memory = memory

    def count(self, stream: str, counts: StreamCounts) -> None:
        """Sets what the log has counted for a stream so far."""
        self._streams[stream] = counts

    def source_failed(self, stream: str, since: float) -> None:
        """Records that the source of a stream failed: its readers, direct and indirect, are not fresh from then on.

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

    def busy(self, seconds: float, kept: KeptCounts = NOTHING_KEPT) -> None:
        """Records that a worker ran a unit for this long, and what it had kept of the states that the unit needed."""
        self._workers.busy(seconds, kept)

    def deciding(self, seconds: float) -> None:
        """Records that a decision took this long."""
        self._decisions.decided(seconds)

    def work(self, now: float, running: Iterable[float] = ()) -> tuple[float, int, float, int]:
        """Busy seconds of workers, finished units, seconds of deciding, and decisions, since the start; ``running`` are
        the start times of the units that are running."""
        workers, decisions = self._workers, self._decisions
        busy = workers.seconds + sum(max(0.0, now - begun) for begun in running)
        return busy, workers.units, decisions.seconds, decisions.decisions

    def snapshot(
        self,
        now: float,
        *,
        running: Iterable[float] = (),
        operators: QueryOperators | None = None,
        overhead: OverheadStatistics | None = None,
    ) -> Snapshot:
        """All meters as plain values that JSON can hold; :mod:`freshet.quality.snapshots` says what they mean.

        Args:
            now: Time of the snapshot.
            running: Start times of the units that are running, so that a long unit shows as busy.
            operators: Statistics of the queries' operators.
            overhead: Statistics of the calls.
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
            "streams": {name: counts.snapshot() for name, counts in self._streams.items()},
            "workers": {
                "workers": self._workers.workers,
                "units": self._workers.units,
                "busy_s": self._workers.seconds,
                "busy_share": self._workers.share(now, running),
                "states_found": self._workers.kept.found,
                "states_rebuilt": self._workers.kept.rebuilt,
                "kept_bytes": self._workers.kept.bytes,
            },
            "decisions": {
                "decisions": self._decisions.decisions,
                "deciding_s": self._decisions.seconds,
                "deciding_share": self._decisions.share(now),
            },
            "overhead": overhead_snapshot(overhead or OverheadStatistics()),
        }

    def _query_snapshot(
        self, meter: QueryMeter, now: float, recent: ResponseCounts, operators: Mapping[str, OperatorStatistics]
    ) -> QuerySnapshot:
        counts = [self._streams[stream] for stream in meter.streams if stream in self._streams]
        shown = {name: _operator_snapshot(statistics) for name, statistics in operators.items()}
        snapshot = meter.snapshot(now, recent, shown)
        snapshot["late"], snapshot["dead"] = sum(each.late for each in counts), sum(each.dead for each in counts)
        return snapshot

    def _total(self, queries: Mapping[str, QuerySnapshot], recent: Iterable[ResponseCounts]) -> TotalSnapshot:
        each = queries.values()
        response = ResponseMeter()
        for meter in self.queries.values():
            response.merge(meter.response)
        ages = [age for query in each if (age := query["oldest_waiting_s"]) is not None]
        fresh = [query for query in each if query["freshness"] is not None]
        freshness = [query["freshness"] or 0.0 for query in fresh]
        return {
            "queries": len(queries),
            "quarantined": sum(query["state"] == "quarantined" for query in each),
            "tuples_in": sum(query["tuples_in"] for query in each),
            "tuples_out": sum(query["tuples_out"] for query in each),
            "errors": sum(query["errors"] for query in each),
            "waiting": sum(query["waiting"] for query in each),
            "bytes_waiting": sum(query["bytes_waiting"] for query in each),
            "state_rows": sum(query["state_rows"] for query in each),
            "state_bytes": sum(query["state_bytes"] for query in each),
            "oldest_waiting_s": max(ages, default=None),
            "freshness": mean_freshness(freshness),
            "weighted_freshness": mean_freshness(freshness, [query["weight"] for query in fresh]),
            "response": response.times().snapshot(ResponseCounts.together(recent)),
            "qos": self._qos(),
        }

    def _qos(self) -> TotalQosSnapshot | None:
        meters = {name: meter.qos for name, meter in self.queries.items() if meter.qos is not None}
        if not meters:
            return None
        qos = overall(meters)
        return {"average": qos.average, "per_tuple": qos.per_tuple, "late": qos.late}


def _operator_snapshot(statistics: OperatorStatistics) -> OperatorSnapshot:
    learned = statistics.learned
    return {
        "tuples_in": statistics.rows_in,
        "tuples_out": statistics.rows_out,
        "seconds": statistics.seconds,
        "cost_s": statistics.cost if learned else None,
        "selectivity": statistics.selectivity if learned else None,
    }


def overhead_snapshot(overhead: OverheadStatistics) -> OverheadSnapshot:
    """The overhead of calls as plain values, for reports."""
    per_call = overhead.seconds if overhead.calls else None
    return {"calls": overhead.calls, "total_s": overhead.total, "per_call_s": per_call}
