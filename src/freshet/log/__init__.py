"""The log: segments, offsets, cursors and the commit store.

A state folder holds ``store.db`` (what exists), ``segments`` (files of Arrow IPC streams), ``dead`` and ``late``
(rows that were set aside, with the reason), ``tail`` (how far the store has come) and ``lock`` (who owns the folder).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

_HOMES: Final = {
    "Advance": "freshet.log.cursors",
    "Collected": "freshet.log.segments.collect",
    "CursorMoved": "freshet.log.errors",
    "Damaged": "freshet.log.errors",
    "Deposed": "freshet.log.errors",
    "DurableLines": "freshet.log.segments.lines",
    "Export": "freshet.log.segments.export",
    "Exported": "freshet.log.segments.export",
    "HeartbeatRecord": "freshet.log.store.records",
    "Intake": "freshet.log.intake.intake",
    "Lagged": "freshet.log.errors",
    "Limits": "freshet.log.segments.retention",
    "Log": "freshet.log.log",
    "LogFull": "freshet.log.errors",
    "LogMeters": "freshet.log.store.records",
    "LogReader": "freshet.log.reader",
    "Malformed": "freshet.log.intake.malformed",
    "NotSynced": "freshet.log.errors",
    "PosixStorage": "freshet.log.segments.storage",
    "QueryRecord": "freshet.log.store.state",
    "ReaderKind": "freshet.log.kinds",
    "ReaderState": "freshet.log.store.state",
    "Rearrangement": "freshet.log.rearranging",
    "Receipt": "freshet.log.intake.intake",
    "Retention": "freshet.log.segments.retention",
    "SegmentWriter": "freshet.log.segments.segment",
    "Storage": "freshet.log.segments.storage",
    "StoreFailed": "freshet.log.errors",
    "StoredVersion": "freshet.log.versions",
    "StreamKind": "freshet.log.kinds",
    "StreamMeter": "freshet.log.store.records",
    "TableVersions": "freshet.log.versions",
    "hidden_path": "freshet.log.segments.export",
    "json_line": "freshet.log.segments.lines",
    "kept_versions": "freshet.log.versions",
    "newest_version": "freshet.log.versions",
    "read_segment": "freshet.log.segments.segment",
    "read_train": "freshet.log.segments.segment",
    "stamped": "freshet.log.store.tail",
    "write_export": "freshet.log.segments.export",
    "write_parquet": "freshet.log.segments.export",
}


def __getattr__(name: str) -> Any:
    """Imports public names when they are first used: who checks an application needs no store.

    Type checkers find them in ``__init__.pyi``.
    """
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, whether they were used already or not."""
    return sorted(_HOMES)
