"""The types of ``report.json``; the page docs/report.md is made from them (see :mod:`freshet.app.report_page`)."""

from __future__ import annotations

from typing import Annotated, TypedDict

from freshet.quality.snapshots import EngineSnapshot, StreamSnapshot


class StreamReport(StreamSnapshot):
    """A stream."""

    waiting_bytes: Annotated[int, "bytes that a reader still needs"]
    held_back: Annotated[str | None, "why it takes nothing in now"]


class SourceReport(TypedDict):
    """A source."""

    stream: Annotated[str, "the stream that the source feeds"]
    state: Annotated[
        str,
        "`new`, `running`, `waiting` (nothing has come for a second, more may), `held back`, `exhausted` (nothing more "
        "comes), `failed` or `stopped`",
    ]
    reason: Annotated[str | None, "why it is held back or failed"]
    rows: Annotated[int, "tuples that it brought"]
    dead: Annotated[int, "malformed rows among what it brought"]
    late: Annotated[int, "late rows among what it brought"]
    batches: Annotated[int, "appends"]
    heartbeats: Annotated[int, "times that it said that nothing came"]
    held_back: Annotated[int, "how often it had to wait for room"]
    held_seconds: Annotated[float, "for how long altogether"]
    failed_at: Annotated[float | None, "when it failed, in seconds since the epoch; else null"]


class SinkReport(TypedDict):
    """A sink."""

    query: Annotated[str, "the query whose output the sink takes"]
    name: Annotated[str, "its name"]
    state: Annotated[str, "`running`, `failing` (the last write raised and is tried again) or `stopped`"]
    reason: Annotated[str | None, "why it is failing"]
    rows: Annotated[int, "rows taken"]
    batches: Annotated[int, "writes"]
    failures: Annotated[int, "writes that raised"]
    lost: Annotated[int, "rows that the log had to give up before the sink took them"]
    waiting: Annotated[int, "rows that it has not taken yet"]
    note: Annotated[str | None, "what to know of it besides, such as that its file was deleted; else null"]


class TableReport(TypedDict):
    """A table."""

    versions: Annotated[int, "contents that the table has had"]
    kept: Annotated[int, "versions that are kept, because a tuple may still meet them"]
    rows: Annotated[int, "rows of the newest version"]
    bytes: Annotated[int, "bytes of the versions that are kept"]
    error: Annotated[str | None, "why what is in the file now is not the newest version"]


class SettingsReport(TypedDict):
    """How the run was started."""

    state: Annotated[str, "the state folder"]
    master: Annotated[str, "the Spark master"]
    workers: Annotated[int, "as declared"]
    max_train_rows: Annotated[int, "as declared"]
    unit_timeout: Annotated[float | None, "as declared, in seconds; null: unlimited"]
    max_rows_out_per_row: Annotated[int | None, "as declared"]
    share: Annotated[str, "as declared"]
    spark: Annotated[dict[str, str], "Spark settings, as declared"]


class Report(EngineSnapshot):
    """A run."""

    format: Annotated[int, "version of these keys; new keys do not change it"]
    app: Annotated[str, "name of the application"]
    status: Annotated[str, "`running`, `draining`, `stopped` or `failed`"]
    error: Annotated[str | None, "why it failed"]
    policy: Annotated[str, "the scheduling policy"]
    written: Annotated[str, "when the report was written, ISO 8601"]
    notes: Annotated[list[str], "sentences on what the start meant for queries and sinks of the run before"]
    changes: Annotated[
        dict[str, str], "what the start meant for a query: `new`, `unchanged`, `changed`, `back` or `dropped`"
    ]
    streams: Annotated[dict[str, StreamReport], ""]  # type: ignore[misc]  # with more keys than the engine knows
    sources: Annotated[dict[str, SourceReport], ""]
    sinks: Annotated[dict[str, SinkReport], ""]
    tables: Annotated[dict[str, TableReport], ""]
    settings: Annotated[SettingsReport, ""]
    versions: Annotated[dict[str, str], "versions of Freshet, Python and the libraries that compute"]
