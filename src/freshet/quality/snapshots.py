"""What the meters report: plain values that JSON can hold, each with its meaning.

Names that end in ``_s`` are seconds, names that end in ``_per_s`` are rates per second. Shares lie between 0 and 1.
An unknown value is None, never NaN. The page docs/report.md is made from these types.
"""

from __future__ import annotations

from typing import Annotated, TypedDict

Counted = int
Seconds = float
Share = float


class ResponseSnapshot(TypedDict):
    """Response times of output tuples, from arrival to output (FAS Def. 1)."""

    count: Annotated[Counted, "number of output tuples with a measured response time, from arrival to output"]
    mean_s: Annotated[Seconds | None, "mean response time"]
    p50_s: Annotated[Seconds | None, "median response time"]
    p95_s: Annotated[Seconds | None, "95th percentile"]
    p99_s: Annotated[Seconds | None, "99th percentile"]
    max_s: Annotated[Seconds | None, "longest response time"]
    recent_mean_s: Annotated[
        Seconds | None, "mean over the output tuples of the last 5 to 10 s: how old answers are at present"
    ]
    recent_p95_s: Annotated[Seconds | None, "95th percentile over the same tuples"]


class QosSnapshot(TypedDict):
    """How well the answers of a query keep to its latency curve (CAR §4.2)."""

    mean: Annotated[float | None, "mean utility of its output tuples"]
    count: Annotated[Counted, "number of output tuples with a utility"]
    late: Annotated[Counted, "number of output tuples that came too late for full utility"]


class TotalQosSnapshot(TypedDict):
    """How well the answers of all queries keep to their latency curves."""

    average: Annotated[float | None, "mean over queries of their mean utility"]
    per_tuple: Annotated[float | None, "mean utility over all their output tuples"]
    late: Annotated[Counted, "number of output tuples that came too late for full utility"]


class ThroughputSnapshot(TypedDict):
    """Tuples per second."""

    in_per_s: Annotated[float | None, "tuples read per second of its life"]
    out_per_s: Annotated[float | None, "tuples written per second of its life"]
    recent_in_per_s: Annotated[float | None, "tuples read per second recently (decayed over 10 s)"]
    recent_out_per_s: Annotated[float | None, "tuples written per second recently"]


class OperatorSnapshot(TypedDict):
    """What an operator did, and what it costs."""

    tuples_in: Annotated[Counted, "number of tuples that the operator took"]
    tuples_out: Annotated[Counted, "number of tuples that it gave out"]
    seconds: Annotated[Seconds, "how long it kept a worker busy; tasks that run side by side count once"]
    cost_s: Annotated[
        Seconds | None, "its cost per tuple, smoothed; the minimum of the first five, because the first ones are cold"
    ]
    selectivity: Annotated[float | None, "its output tuples per input tuple, smoothed"]


class MeasureSnapshot(TypedDict):
    """A measure of which something is expected."""

    priority: Annotated[str, "the class of its expectation"]
    expected: Annotated[float, "what was expected at the latest look: seconds, bytes or tuples per second"]
    observed: Annotated[float | None, "its mean over the time before that look; null if there was nothing to observe"]
    violated: Annotated[bool, "whether it was not as expected"]
    violated_s: Annotated[
        Seconds, "for how long it was not as expected in this run; an interval between looks is judged by its middle"
    ]


class PromiseSnapshot(TypedDict):
    """What is expected of a query, and what it has."""

    standing: Annotated[
        str, "`kept`, `at risk` (less than a tenth is left, or it will be broken at the look-ahead) or `broken`"
    ]
    broken: Annotated[list[str], "the measures that are not as expected"]
    strategy: Annotated[str | None, "the policy that schedules the query; null if it has none of its own"]
    pinned: Annotated[bool, "whether the strategy is the one that was declared"]
    switches: Annotated[Counted, "how often the optimizer has changed the strategy in this run"]
    looks: Annotated[Counted, "how often the optimizer has looked at the query in this run"]
    measures: Annotated[dict[str, MeasureSnapshot], ""]


class BalanceSnapshot(TypedDict):
    """The balance of response time and freshness (FAS §5.2)."""

    bound: Annotated[str, "what should be kept"]
    observed: Annotated[float | None, "what was observed at the latest look: seconds, or a share; null if nothing was"]
    beta: Annotated[float, "the beta that it led to, from 0 (best response time) to 1 (best freshness)"]
    looks: Annotated[Counted, "number of looks"]


class FeasibleSnapshot(TypedDict):
    """Whether a promise can be kept."""

    query: Annotated[str, "the query"]
    promise: Annotated[str, "what was promised"]
    feasible: Annotated[str, "`yes`, `barely` (a tenth more load would break it), `no` or `unknown`"]
    expected: Annotated[str, "what is expected instead"]
    room: Annotated[float | None, "factor by which all rates may grow before it breaks; below 1 it is broken"]
    reason: Annotated[str, "why it cannot be kept, or why that is in doubt"]
    advice: Annotated[str, "what would help"]


class MissSnapshot(TypedDict):
    """An instance of a periodic query that was not answered by its deadline."""

    release: Annotated[Seconds, "when it was released, in seconds since the epoch"]
    late_s: Annotated[Seconds | None, "how late its answer was; `null`: it was given up"]
    waited_s: Annotated[Seconds, "how long it waited until it began"]
    predicted_s: Annotated[Seconds | None, "how long it was expected to take; `null`: nothing was known of its query"]
    took_s: Annotated[Seconds, "how long it took"]
    dropped: Annotated[Share, "share of its tuples that was left out, of the input that lost most"]
    blocked_by: Annotated[dict[str, float], "seconds for which instances of other queries ran while it waited"]


class PeriodicSnapshot(TypedDict):
    """The instances of a periodic query in this run."""

    instances: Annotated[Counted, "number of instances that ended"]
    missed: Annotated[Counted, "number of those that were not answered by their deadline"]
    skipped: Annotated[Counted, "number of releases that had no instance, since nothing ran then or too many were due"]
    abandoned: Annotated[Counted, "number of instances that were given up"]
    ended_early: Annotated[Counted, "number of those that read less than planned, since their time was over (RT §4.4)"]
    quality: Annotated[Share | None, "mean worth of the answers by the quality table; 0 for those missed (RT Eq. 3)"]
    deviation: Annotated[float | None, "standard deviation of the worth over the instances"]
    level: Annotated[Share | None, "worth that the last instance was to have"]
    lateness_s: Annotated[Seconds | None, "how late the late answers were, on average"]
    time_error_p50: Annotated[float | None, "median relative error of the predicted times"]
    selectivity_error_p50: Annotated[float | None, "median relative error of sampled selectivities"]
    sampling_share: Annotated[Share | None, "share of the time of instances that samplers took"]
    misses: Annotated[list[MissSnapshot], "the last of those missed, the newest last, each with:"]


class QuerySnapshot(TypedDict):
    """A query."""

    state: Annotated[str, "`active`, `held back` (its output takes nothing in) or `quarantined` (its code raised)"]
    reason: Annotated[str | None, "why it is held back or quarantined"]
    weight: Annotated[float, "its importance"]
    seconds: Annotated[Seconds, "how long it has existed"]
    tuples_in: Annotated[Counted, "number of tuples read from its streams; each counts once per input that reads it"]
    tuples_out: Annotated[Counted, "number of tuples in its output"]
    errors: Annotated[Counted, "number of evaluation errors that gave NULL"]
    rows_thinned: Annotated[Counted, "number of tuples that it read and left out under overload"]
    missing: Annotated[dict[str, Counted], "number of tuples that its answers lack in this run, by kind of the ledger"]
    completeness: Annotated[Share, "1 minus the share of all tuples read that its answers lack"]
    late: Annotated[
        Counted, "number of tuples of its streams that were set aside as late, since the streams were created"
    ]
    dead: Annotated[Counted, "number of malformed rows of its streams, since the streams were created"]
    waiting: Annotated[Counted, "number of tuples in its queues"]
    bytes_waiting: Annotated[Counted, "bytes in its queues"]
    tuple_bytes: Annotated[float | None, "mean bytes of the tuples that waited for it most recently"]
    oldest_waiting_s: Annotated[Seconds | None, "how long the oldest tuple in its queues has waited"]
    state_rows: Annotated[Counted, "number of rows that its windows, joins and aggregates remember"]
    state_bytes: Annotated[Counted, "bytes of these rows"]
    watermark_lag_s: Annotated[Seconds | None, "how far their event time lies behind the present"]
    freshness: Annotated[
        Share | None,
        "share of time in which no matching tuple waited (FAS Eq. 2); a tuple that still waits counts by its "
        "probability to match, and the time since a source of its streams failed counts as stale; `null` with a PERIOD",
    ]
    freshness_exact: Annotated[bool, "true if no interval of it had to be interpolated"]
    response: Annotated[ResponseSnapshot, ""]
    qos: Annotated[
        QosSnapshot | None, "how well its answers keep to its latency curve; `null` if it has none, otherwise:"
    ]
    promise: Annotated[
        PromiseSnapshot | None, "how it stands with what is expected of it; `null` if nothing is, otherwise:"
    ]
    instances: Annotated[
        PeriodicSnapshot | None, "what became of its instances; `null` if it has no PERIOD or none ended, otherwise:"
    ]
    throughput: Annotated[ThroughputSnapshot, ""]
    operators: Annotated[dict[str, OperatorSnapshot], ""]


class TotalSnapshot(TypedDict):
    """All queries together."""

    queries: Annotated[Counted, "number of queries"]
    quarantined: Annotated[Counted, "number of quarantined queries"]
    tuples_in: Annotated[Counted, "sum over queries"]
    tuples_out: Annotated[Counted, "sum over queries"]
    errors: Annotated[Counted, "sum over queries"]
    waiting: Annotated[Counted, "sum over queries: a tuple counts once for each query that has yet to see it"]
    bytes_waiting: Annotated[Counted, "sum over queries"]
    state_rows: Annotated[Counted, "sum over queries"]
    state_bytes: Annotated[Counted, "sum over queries"]
    oldest_waiting_s: Annotated[Seconds | None, "how long the oldest waiting tuple of any query has waited"]
    freshness: Annotated[Share | None, "mean over queries (FAS Eq. 3)"]
    weighted_freshness: Annotated[Share | None, "mean over queries, weighted (FAS §4.4)"]
    response: Annotated[ResponseSnapshot, ""]
    qos: Annotated[
        TotalQosSnapshot | None, "over the queries with a latency curve; `null` if there are none, otherwise:"
    ]


class StreamSnapshot(TypedDict):
    """A stream."""

    tuples: Annotated[Counted, "number of tuples that ever came in"]
    late: Annotated[Counted, "number of rows that ever came too late"]
    dead: Annotated[Counted, "number of rows that were ever malformed"]
    heartbeats: Annotated[Counted, "number of entries that say that nothing came"]
    bytes: Annotated[Counted, "bytes that are kept"]


class WorkersSnapshot(TypedDict):
    """The workers."""

    workers: Annotated[Counted, "maximum number of units that run at once"]
    units: Annotated[Counted, "number of finished units"]
    busy_s: Annotated[Seconds, "time spent in units, summed over workers"]
    busy_share: Annotated[Share | None, "share of the workers' time spent in units"]
    states_found: Annotated[Counted, "how often a worker had kept a state that it needed, or an earlier version of it"]
    states_rebuilt: Annotated[Counted, "how often it had not, and built the state from the log"]
    kept_bytes: Annotated[Counted, "memory of the states that the worker of the latest such unit keeps"]


class DecisionsSnapshot(TypedDict):
    """The policy."""

    decisions: Annotated[Counted, "number of decisions of the policy"]
    deciding_s: Annotated[Seconds, "time that decisions took"]
    deciding_share: Annotated[Share | None, "share of the run's time that decisions took"]


class OverheadSnapshot(TypedDict):
    """What steps cost besides their operators."""

    calls: Annotated[Counted, "number of units with a measured overhead"]
    total_s: Annotated[Seconds, "how long they kept a worker busy, besides their operators"]
    per_call_s: Annotated[
        Seconds | None, "overhead of one unit, smoothed; the minimum of the first five, because the first ones are cold"
    ]


class ResidentPlace(TypedDict):
    """A resident that is there."""

    process: Annotated[int, "number of its process"]
    host: Annotated[str, "name of the machine that it runs on"]
    kept_bytes: Annotated[int, "memory of the states that it keeps"]


class ResidentsSnapshot(TypedDict):
    """The residents."""

    wanted: Annotated[Counted, "how many there should be"]
    present: Annotated[list[ResidentPlace], "the residents that are connected now"]
    restarts: Annotated[Counted, "how many were lost, and replaced"]
    dispatches: Annotated[Counted, "how many parts of units were handed to them"]
    lost: Annotated[Counted, "how many of these parts were lost with their resident, or took too long"]
    given_back: Annotated[Counted, "number of units that ran as Spark jobs after all"]
    reason: Annotated[str | None, "why there are fewer than declared, if there are"]


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


class OptimizerSnapshot(TypedDict):
    """The optimizer."""

    mode: Annotated[str, "`act`, `advise` or `off` (then it only keeps declared strategies)"]
    looks: Annotated[Counted, "number of looks at queries"]
    switches: Annotated[Counted, "number of strategies that it has changed"]
    looking_s: Annotated[Seconds, "time that looks and their meters took"]
    monitor_share: Annotated[Share | None, "share of the run's time that they took"]


class EngineSnapshot(Snapshot):
    """All meters at a moment, and whether the engine is in trouble."""

    optimizer: Annotated[
        OptimizerSnapshot | None, "the optimizer; `null` if no query has expectations or a strategy, otherwise:"
    ]

    ways: Annotated[
        dict[str, OverheadSnapshot],
        "the same for units of one way: `resident`, `vectorised`, `catalyst`, `vectorised+catalyst` or `staged`",
    ]
    trouble: Annotated[str | None, "why steps are being tried again at present, such as a full disk or a lost cluster"]
