"""The types of ``report.json``; the page docs/report.md is made from them (see :mod:`freshet.app.reports.page`)."""

from __future__ import annotations

from typing import Annotated, TypedDict

from freshet.quality.snapshots import (
    BalanceSnapshot,
    EngineSnapshot,
    FeasibleSnapshot,
    ResidentsSnapshot,
    StreamSnapshot,
)


class StreamReport(StreamSnapshot):
    """A stream."""

    waiting_bytes: Annotated[int, "bytes that some reader still needs"]
    held_back: Annotated[str | None, "why it takes nothing in at present"]


class SourceReport(TypedDict):
    """A source."""

    stream: Annotated[str, "the stream that the source feeds"]
    state: Annotated[
        str,
        "`new`, `running`, `waiting` (nothing has come for a second, but more may), `held back`, `exhausted` (nothing "
        "more will come), `failed` or `stopped`",
    ]
    reason: Annotated[str | None, "why it is held back or failed"]
    rows: Annotated[int, "number of tuples that it brought"]
    dead: Annotated[int, "number of malformed rows that it brought"]
    late: Annotated[int, "number of late rows that it brought"]
    batches: Annotated[int, "number of appends"]
    heartbeats: Annotated[int, "how often it reported that nothing came"]
    held_back: Annotated[int, "how often it had to wait for room"]
    held_seconds: Annotated[float, "how long it had to wait for room in total"]
    failed_at: Annotated[float | None, "when it failed, in seconds since the epoch; null if it did not"]


class MirrorReport(TypedDict):
    """A mirror."""

    elements: Annotated[int, "number of elements"]
    unit: Annotated[str, "what the budget counts: `polls` or `bytes`"]
    budget_per_s: Annotated[float, "the budget: maximum number of polls, or bytes, a second"]
    budget_used: Annotated[float, "share of the budget that was spent"]
    polls: Annotated[int, "number of requests in all runs; retries, redirects, exploration and audits count"]
    changes: Annotated[int, "number of changes that polls found in all runs; the first sight of an element is none"]
    bytes: Annotated[int, "bytes that answers brought in all runs, headers included"]
    failures: Annotated[int, "number of polls in all runs that brought no answer"]
    failing: Annotated[int, "number of elements whose last poll failed"]
    failing_examples: Annotated[dict[str, str], "why the last poll of an element failed, for some of them"]
    refused: Annotated[
        int, "number of names that may not be polled, such as those of a host that is not allowed; each counts once"
    ]
    waiting: Annotated[int, "number of elements that are due and wait for their host"]
    freshness: Annotated[
        float | None, "estimated perceived freshness now: the chance, weighted by worth, that a copy is right"
    ]
    freshness_planned: Annotated[
        float | None,
        "perceived freshness that the present plan reaches on average; elements that fail count as not fresh",
    ]
    freshness_audited: Annotated[
        float | None,
        "share of audits, polls at random moments, that found the copy right, in all runs; "
        "an element that does not answer, or must be left alone, counts as not right",
    ]
    freshness_audited_error: Annotated[float | None, "standard error of that share"]
    audits: Annotated[int, "number of audits in all runs, also of those that brought no answer"]
    floors_need_per_s: Annotated[
        float | None, "budget that the floors need by what is known of the change rates; null without floors"
    ]


class SinkReport(TypedDict):
    """A sink."""

    query: Annotated[str, "the query whose output the sink takes"]
    name: Annotated[str, "its name"]
    state: Annotated[str, "`running`, `failing` (the last write raised, and will be tried again) or `stopped`"]
    reason: Annotated[str | None, "why it is failing"]
    rows: Annotated[int, "number of rows taken"]
    batches: Annotated[int, "number of writes"]
    failures: Annotated[int, "number of writes that raised"]
    lost: Annotated[int, "number of rows that the log had to drop before the sink took them"]
    waiting: Annotated[int, "number of rows that it has not taken yet"]
    note: Annotated[str | None, "anything else worth knowing, such as a deleted file; null if there is nothing"]


class TableReport(TypedDict):
    """A table."""

    versions: Annotated[int, "number of contents that the table has had"]
    kept: Annotated[int, "number of versions that are kept because a tuple may still meet them"]
    rows: Annotated[int, "number of rows of the newest version"]
    bytes: Annotated[int, "bytes of the versions that are kept"]
    error: Annotated[str | None, "why the present content of the file is not the newest version"]


class JoinInputReport(TypedDict):
    """An input of a join by ordered keys."""

    join: Annotated[str, "name of the join"]
    streams: Annotated[list[str], "the stream that comes in there; several if the input is a join itself"]
    ordered_by: Annotated[str, "its ordered key"]
    mark: Annotated[int | None, "its key mark: later tuples at or below it do not count; a time is in microseconds"]
    rows_held: Annotated[int, "number of its tuples that the join remembers"]
    rows_predicted: Annotated[
        int,
        "maximum of these by the order of the streams (WU Eq. 3.7 and 3.8, corrected); of a join an estimate",
    ]
    rows_resting: Annotated[int, "number of its tuples that rest in their log, because it runs ahead of the others"]
    buffer: Annotated[str, "how the join buffers: the `join_buffer` of the query"]
    lag: Annotated[
        int | None, "number of tuples that it runs ahead of the input that lags most; `null` if the input is a join"
    ]
    disorder: Annotated[
        int | None, "by how many tuples the share `in_order` of its tuples comes out of order at most; `null` as above"
    ]
    disorder_distance: Annotated[int | None, "the same as a distance of keys; of times in microseconds"]
    grows: Annotated[
        bool, "true if the disorder grows with the stream, so that no memory is enough: it is not ordered by that key"
    ]
    past: Annotated[int, "number of tuples of the streams that came past the mark, since the key was declared"]


class LetGoReport(TypedDict):
    """What a join let go while its marks were at one level."""

    join: Annotated[str, "name of the join"]
    since: Annotated[str | None, "when the first tuple came for which that level held; `null`: none came yet"]
    above: Annotated[int | None, "the level before: partners with keys above it, up to the next one, were given up"]
    upto: Annotated[int, "the level: later tuples at or below it do not count; a time is in microseconds"]
    rows: Annotated[int, "number of tuples of all inputs that came until the next level"]
    let_go: Annotated[int, "number of these that were let go"]
    completeness: Annotated[float, "estimated share of the answers of that time that is there"]


class JoinMemoryReport(TypedDict):
    """The memory of a join with a bound."""

    join: Annotated[str, "name of the join"]
    limit: Annotated[int, "its `join_memory` or its part of the application's, in bytes"]
    bytes: Annotated[int, "what its remembered tuples need at most, as the log reckons; never above the limit"]


class JoinsReport(TypedDict):
    """The joins by ordered keys of a query."""

    inputs: Annotated[list[JoinInputReport], "the inputs of its joins by ordered keys; a list of:"]
    memory: Annotated[list[JoinMemoryReport], "its joins whose memory has a bound; a list of:"]
    let_go: Annotated[list[LetGoReport], "what they let go because of it, the newest 12 levels; a list of:"]


class SettingsReport(TypedDict):
    """How the run was started."""

    state: Annotated[str, "the state folder"]
    master: Annotated[str, "the Spark master"]
    workers: Annotated[int, "as declared"]
    max_train_rows: Annotated[int, "as declared"]
    unit_timeout: Annotated[float | None, "as declared, in seconds; null means unlimited"]
    max_rows_out_per_row: Annotated[int | None, "as declared"]
    kept_state: Annotated[int, "as declared, in bytes"]
    join_memory: Annotated[int | None, "as declared, in bytes"]
    share: Annotated[str, "as declared"]
    classes: Annotated[dict[str, float], "weight of each class of expectations"]
    look_every: Annotated[float, "as declared, in seconds"]
    look_ahead: Annotated[float, "as declared, in seconds"]
    least_stay: Annotated[float, "as declared, in seconds"]
    optimizer: Annotated[str, "as declared"]
    expect: Annotated[str | None, "as declared"]
    ageing: Annotated[float | None, "as declared, in seconds; null means no limit"]
    ranks: Annotated[str | dict[str, object], "as declared"]
    periodic: Annotated[str, "as declared"]
    reserve: Annotated[float, "as declared"]
    levels: Annotated[str, "as declared"]
    aim: Annotated[str, "as declared"]
    ahead: Annotated[bool, "as declared"]
    admission: Annotated[str, "as declared"]
    spark: Annotated[dict[str, str], "Spark settings, as declared"]
    resident: Annotated[int | str, "as declared"]
    resident_port: Annotated[int, "as declared"]


class Report(EngineSnapshot):
    """A run."""

    format: Annotated[int, "version of this format; new keys do not change it"]
    app: Annotated[str, "name of the application"]
    status: Annotated[str, "`running`, `draining`, `stopped` or `failed`"]
    error: Annotated[str | None, "why it failed"]
    policy: Annotated[str, "the scheduling policy"]
    written: Annotated[str, "when the report was written, ISO 8601"]
    notes: Annotated[list[str], "sentences that say what the start changed for queries and sinks of the run before"]
    changes: Annotated[
        dict[str, str], "how the start found a query: `new`, `unchanged`, `changed`, `back` or `dropped`"
    ]
    streams: Annotated[dict[str, StreamReport], ""]  # type: ignore[misc]  # with more keys than the engine knows
    sources: Annotated[dict[str, SourceReport], ""]
    mirrors: Annotated[dict[str, MirrorReport], ""]
    sinks: Annotated[dict[str, SinkReport], ""]
    tables: Annotated[dict[str, TableReport], ""]
    joins: Annotated[dict[str, JoinsReport], ""]
    feasible: Annotated[
        list[FeasibleSnapshot], "whether each promise can be kept, by rates and costs of the last seconds; a list of:"
    ]
    balance: Annotated[BalanceSnapshot | None, "the balance of `fas-mcq`; `null` if none was declared, otherwise:"]
    latest_decision: Annotated[str | None, "the latest decision that ran something, and why this and not that"]
    residents: Annotated[ResidentsSnapshot, ""]
    settings: Annotated[SettingsReport, ""]
    versions: Annotated[dict[str, str], "versions of Freshet, Python and the libraries that compute"]
