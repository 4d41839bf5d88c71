"""The meter of one query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

import numpy as np

from freshet.model import ChainResult, Missing, Promises
from freshet.quality.freshness import FreshnessMeter
from freshet.quality.qos import QosMeter
from freshet.quality.rate import RecentRate
from freshet.quality.recent import RecentResponse, ResponseCounts
from freshet.quality.response import ResponseMeter
from freshet.quality.snapshots import OperatorSnapshot, QuerySnapshot
from freshet.quality.waiting import Remembered, Waiting

_NOTHING_WAITS = Waiting()
_NO_MEMORY = Remembered()


class QueryMeter:
    """Everything that is measured about one query.

    Args:
        start: When it was added.
        promises: What was promised to it.
        streams: What it reads, for the counts of late and dead tuples.

    >>> from freshet.model import Chain, ChainResult
    >>> meter = QueryMeter(start=0.0)
    >>> meter.record(ChainResult(Chain((0,), ()), 2, (), (4.0, 5.0)), departure=6.0, rows_in=100)
    >>> meter.tuples_in, meter.tuples_out, meter.response.times().mean, meter.freshness(now=10.0)
    (100, 2, 1.5, 0.8)
    """

    __slots__ = (
        "_freshness",
        "_recent_in",
        "_recent_out",
        "blind",
        "errors",
        "held",
        "memory",
        "missing",
        "promises",
        "qos",
        "reason",
        "recent",
        "response",
        "start",
        "state",
        "streams",
        "tuple_bytes",
        "tuples_in",
        "tuples_out",
        "waiting",
    )

    def __init__(self, start: float, promises: Promises | None = None, streams: Iterable[str] = ()) -> None:
        self.start = start
        self.promises = promises or Promises()
        self.streams = tuple(streams)
        self.state: Literal["active", "quarantined"] = "active"
        self.reason: str | None = None
        self.held: str | None = None
        self.waiting = _NOTHING_WAITS
        self.tuple_bytes: float | None = None
        """Mean bytes of the tuples that waited for it most recently."""
        self.blind: float | None = None
        """Since when nobody knows what waits for it, because a source of its streams failed."""
        self.memory = _NO_MEMORY
        self.tuples_in = 0
        self.tuples_out = 0
        self.errors = 0
        self.missing: Counter[str] = Counter()
        """Tuples that its answers lack, by kind."""
        self.response = ResponseMeter()
        self.recent = RecentResponse(self.response.seen, start)
        self.qos = None if self.promises.curve is None else QosMeter(self.promises.curve)
        self._freshness = FreshnessMeter(start)
        self._recent_in = RecentRate(start)
        self._recent_out = RecentRate(start)

    def promise(self, promises: Promises) -> None:
        """Changes the promises: from here on its QoS is that of the new curve."""
        if promises.curve != self.promises.curve:
            self.qos = None if promises.curve is None else QosMeter(promises.curve)
        self.promises = promises

    def wait(self, waiting: Waiting) -> None:
        """Sets what waits for it."""
        self.waiting = waiting
        if waiting.rows:
            self.tuple_bytes = waiting.bytes / waiting.rows

    def record(self, result: ChainResult, departure: float, *, rows_in: int = 0, ends: bool = True) -> None:
        """Records a chain's part of a unit that was committed.

        Args:
            result: What the chain did. A failed chain was not committed and changes nothing. If the result has the
                departure of each tuple, everything is exact.
            departure: When its output became durable and readable.
            rows_in: Number of tuples that it read from streams and outputs, not from queues between operators.
            ends: Whether the chain wrote the query's output.
        """
        if result.failure is not None:
            return
        self.errors += result.errors
        if rows_in:
            self.tuples_in += rows_in
            self._recent_in.add(rows_in, departure)
        rows_out = result.rows_out
        if ends and rows_out:
            self.recent.turn(departure)
            self._depart(result, departure)
            if self.qos is not None:
                self.qos.record(result, departure)
            self.tuples_out += rows_out
            self._recent_out.add(rows_out, departure)

    def miss(self, entry: Missing) -> None:
        """Records tuples that its answers lack; they count as read, too."""
        self.missing[entry.kind] += entry.rows

    def completeness(self) -> float:
        """Share of the tuples that it read which its answers take into account.

        >>> meter = QueryMeter(start=0.0)
        >>> meter.tuples_in = 100
        >>> meter.miss(Missing("q", "q.filter_1", "s", "thinned", 0, 100, 25, 0.75, "hash 1"))
        >>> meter.completeness()
        0.75
        """
        return 1.0 - self.missing.total() / self.tuples_in if self.tuples_in else 1.0

    def _depart(self, result: ChainResult, departure: float) -> None:
        arrivals = result.arrivals
        if result.departures is not None:
            came = np.asarray(arrivals, dtype=np.float64)
            self.response.add_many(result.departures - came)
            self._freshness.stale_many(came, result.departures)
            return
        if isinstance(arrivals, np.ndarray):
            arrivals = arrivals.tolist()
        self.response.add_train(result.rows_out, departure, arrivals)
        self._freshness.stale(arrivals[0], departure)

    def freshness(self, now: float) -> float:
        """F(D) since the start, including what waits (FAS Eq. 2, §4.2); the time since a source failed is not fresh."""
        waiting = self.waiting
        known = now if self.blind is None else min(now, max(self.start, self.blind))
        share = (known - self.start) / (now - self.start) if known < now else 1.0
        return share * self._freshness.freshness(known, waiting.since, waiting.probability)

    def snapshot(
        self, now: float, recent: ResponseCounts | None = None, operators: dict[str, OperatorSnapshot] | None = None
    ) -> QuerySnapshot:
        """Its part of :meth:`freshet.quality.meters.Meters.snapshot`; ``recent`` is what it saw recently, if known."""
        waiting, memory = self.waiting, self.memory
        lived = max(0.0, now - self.start)
        return {
            "state": "held back" if self.held is not None and self.state == "active" else self.state,
            "reason": self.reason or self.held,
            "weight": self.promises.weight,
            "seconds": lived,
            "tuples_in": self.tuples_in,
            "tuples_out": self.tuples_out,
            "errors": self.errors,
            "rows_thinned": self.missing["thinned"],
            "missing": dict(self.missing),
            "completeness": self.completeness(),
            "late": 0,
            "dead": 0,
            "waiting": waiting.rows,
            "bytes_waiting": waiting.bytes,
            "tuple_bytes": self.tuple_bytes,
            "oldest_waiting_s": None if waiting.since is None else max(0.0, now - waiting.since),
            "state_rows": memory.rows,
            "state_bytes": memory.bytes,
            "watermark_lag_s": None if memory.watermark is None else max(0.0, now - memory.watermark),
            "freshness": None if self.promises.period is not None else self.freshness(now),
            "freshness_exact": self._freshness.exact,
            "response": self.response.times().snapshot(recent or self.recent.seen(now)),
            "qos": None if self.qos is None else self.qos.snapshot(),
            "promise": None,
            "instances": None,
            "throughput": {
                "in_per_s": self.tuples_in / lived if lived else None,
                "out_per_s": self.tuples_out / lived if lived else None,
                "recent_in_per_s": self._recent_in.rate(now),
                "recent_out_per_s": self._recent_out.rate(now),
            },
            "operators": operators or {},
        }
