"""What the meters tell: plain values that JSON can hold, each with its meaning.

Names that end in ``_s`` are seconds, in ``_per_s`` rates per second; shares are between 0 and 1. What is not known is
None, never NaN. The page docs/report.md is made from these types.
"""

from __future__ import annotations

from typing import Annotated, TypedDict

Count = int
Seconds = float
Share = float


class ResponseSnapshot(TypedDict):
    """Response times of output tuples, from arrival to output (FAS Def. 1)."""

    count: Annotated[Count, "output tuples whose response time was measured, from arrival to output"]
    mean_s: Annotated[Seconds | None, "mean response time"]
    p50_s: Annotated[Seconds | None, "median response time"]
    p95_s: Annotated[Seconds | None, "95th percentile"]
    p99_s: Annotated[Seconds | None, "99th percentile"]
    max_s: Annotated[Seconds | None, "longest response time"]
    recent_mean_s: Annotated[
        Seconds | None, "mean over the output tuples of the last 5 to 10 s: how old answers are now"
    ]
    recent_p95_s: Annotated[Seconds | None, "95th percentile over these"]


class QosSnapshot(TypedDict):
    """How content the latency curve of a query is (CAR §4.2)."""

    mean: Annotated[float | None, "mean utility of its output tuples"]
    count: Annotated[Count, "output tuples that were weighed"]
    late: Annotated[Count, "output tuples later than the curve promises in full"]


class TotalQosSnapshot(TypedDict):
    """How content the latency curves of all queries are."""

    average: Annotated[float | None, "mean over queries of their mean utility"]
    per_tuple: Annotated[float | None, "mean utility over their output tuples"]
    late: Annotated[Count, "output tuples later than their curve promises in full"]


class ThroughputSnapshot(TypedDict):
    """Tuples per second."""

    in_per_s: Annotated[float | None, "tuples read per second of its life"]
    out_per_s: Annotated[float | None, "tuples written per second of its life"]
    recent_in_per_s: Annotated[float | None, "tuples read per second lately (decayed over 10 s)"]
    recent_out_per_s: Annotated[float | None, "tuples written per second lately"]


class OperatorSnapshot(TypedDict):
    """What an operator did and costs."""

    tuples_in: Annotated[Count, "tuples that an operator took"]
    tuples_out: Annotated[Count, "tuples that it gave on"]
    seconds: Annotated[Seconds, "time that it kept a worker: tasks that run side by side count once"]
    cost_s: Annotated[Seconds | None, "its cost per tuple, smoothed"]
    selectivity: Annotated[float | None, "its output tuples per input tuple, smoothed"]


class QuerySnapshot(TypedDict):
    """A query."""

    state: Annotated[str, "`active`, `held back` (its output takes nothing in now) or `quarantined` (its code raised)"]
    reason: Annotated[str | None, "why it is held back or quarantined"]
    weight: Annotated[float, "its importance"]
    seconds: Annotated[Seconds, "how long it has been there"]
    tuples_in: Annotated[Count, "tuples read from its streams, once for each input that reads them"]
    tuples_out: Annotated[Count, "tuples in its output"]
    errors: Annotated[Count, "evaluation errors that gave NULL"]
    late: Annotated[Count, "tuples of its streams that came too late and were set aside, since the streams exist"]
    dead: Annotated[Count, "malformed rows of its streams that were set aside, since the streams exist"]
    waiting: Annotated[Count, "tuples in its queues"]
    bytes_waiting: Annotated[Count, "bytes in its queues"]
    oldest_waiting_s: Annotated[Seconds | None, "how long the oldest of them has waited"]
    state_rows: Annotated[Count, "rows that its windows, joins and aggregates remember"]
    state_bytes: Annotated[Count, "bytes of these rows"]
    watermark_lag_s: Annotated[Seconds | None, "how far event time in them is behind now"]
    freshness: Annotated[
        Share,
        "share of time in which no matching tuple waited (FAS Eq. 2); what waits now counts by its probability to "
        "match, and the time since a source of its streams failed counts as stale",
    ]
    freshness_exact: Annotated[bool, "whether no interval of it had to be interpolated"]
    response: Annotated[ResponseSnapshot, ""]
    qos: Annotated[QosSnapshot | None, "how content its latency curve is; `null` where it has none, else:"]
    throughput: Annotated[ThroughputSnapshot, ""]
    operators: Annotated[dict[str, OperatorSnapshot], ""]


class TotalSnapshot(TypedDict):
    """All queries together."""

    queries: Annotated[Count, "how many there are"]
    quarantined: Annotated[Count, "how many of them are quarantined"]
    tuples_in: Annotated[Count, "sum over queries"]
    tuples_out: Annotated[Count, "sum over queries"]
    errors: Annotated[Count, "sum over queries"]
    waiting: Annotated[Count, "sum over queries: a tuple counts for each query that has still to see it"]
    bytes_waiting: Annotated[Count, "sum over queries"]
    state_rows: Annotated[Count, "sum over queries"]
    state_bytes: Annotated[Count, "sum over queries"]
    oldest_waiting_s: Annotated[Seconds | None, "how long the oldest tuple that waits for some query has waited"]
    freshness: Annotated[Share | None, "mean over queries (FAS Eq. 3)"]
    weighted_freshness: Annotated[Share | None, "mean over queries by weight (FAS §4.4)"]
    response: Annotated[ResponseSnapshot, ""]
    qos: Annotated[TotalQosSnapshot | None, "over the queries with a latency curve; `null` where there are none, else:"]


class StreamSnapshot(TypedDict):
    """A stream."""

    tuples: Annotated[Count, "tuples that ever came in"]
    late: Annotated[Count, "rows that ever came too late"]
    dead: Annotated[Count, "rows that were ever malformed"]
    heartbeats: Annotated[Count, "entries that say that nothing came"]
    bytes: Annotated[Count, "bytes that are kept"]


class WorkersSnapshot(TypedDict):
    """The workers."""

    workers: Annotated[Count, "units that may run at once"]
    units: Annotated[Count, "units that were finished"]
    busy_s: Annotated[Seconds, "time spent in them, summed over workers"]
    busy_share: Annotated[Share | None, "share of the workers' time"]


class DecisionsSnapshot(TypedDict):
    """The policy."""

    decisions: Annotated[Count, "decisions of the policy"]
    deciding_s: Annotated[Seconds, "time that they took"]
    deciding_share: Annotated[Share | None, "share of the run's time"]


class OverheadSnapshot(TypedDict):
    """What steps cost beside their operators."""

    calls: Annotated[Count, "units whose overhead was measured"]
    total_s: Annotated[Seconds, "time that they kept a worker beside their operators"]
    per_call_s: Annotated[
        Seconds | None, "overhead of one, smoothed; of the first five the least, for the first ones are cold"
    ]


class Snapshot(TypedDict):
    """All meters at a moment."""

    time: Annotated[Seconds, "the moment, in seconds since the epoch"]
    seconds: Annotated[Seconds, "how long the run has lasted"]
    queries: Annotated[dict[str, QuerySnapshot], ""]
    total: Annotated[TotalSnapshot, ""]
    streams: Annotated[dict[str, StreamSnapshot], ""]
    workers: Annotated[WorkersSnapshot, ""]
    decisions: Annotated[DecisionsSnapshot, ""]
    overhead: Annotated[OverheadSnapshot, ""]


class EngineSnapshot(Snapshot):
    """All meters at a moment, and whether the engine is in trouble."""

    trouble: Annotated[str | None, "why steps are being tried again at present: a full disk, a lost cluster"]
