"""The types of ``report.json``; the page docs/report.md is made from them (see :mod:`freshet.app.reports.page`)."""

from __future__ import annotations

from typing import Annotated, TypedDict

from freshet.quality.snapshots import EngineSnapshot, StreamSnapshot


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


class SettingsReport(TypedDict):
    """How the run was started."""

    state: Annotated[str, "the state folder"]
    master: Annotated[str, "the Spark master"]
    workers: Annotated[int, "as declared"]
    max_train_rows: Annotated[int, "as declared"]
    unit_timeout: Annotated[float | None, "as declared, in seconds; null means unlimited"]
    max_rows_out_per_row: Annotated[int | None, "as declared"]
    kept_state: Annotated[int, "as declared, in bytes"]
    share: Annotated[str, "as declared"]
    spark: Annotated[dict[str, str], "Spark settings, as declared"]


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
    sinks: Annotated[dict[str, SinkReport], ""]
    tables: Annotated[dict[str, TableReport], ""]
    latest_decision: Annotated[str | None, "the latest decision that ran something, and why this and not that"]
    settings: Annotated[SettingsReport, ""]
    versions: Annotated[dict[str, str], "versions of Freshet, Python and the libraries that compute"]
