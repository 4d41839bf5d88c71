"""The log: segments, offsets, cursors and the commit store.

A state folder holds ``store.db`` (what exists), ``segments`` (files of Arrow IPC streams), ``dead`` and ``late``
(rows that were set aside, with the reason), ``tail`` (how far the store has come) and ``lock`` (who owns the folder).
"""

from freshet.log.cursors import Advance
from freshet.log.errors import CursorMoved, Damaged, Deposed, Lagged, LogFull, NotSynced, StoreFailed
from freshet.log.intake.intake import Intake, Malformed, Receipt
from freshet.log.kinds import ReaderKind, StreamKind
from freshet.log.log import Log
from freshet.log.reader import LogReader
from freshet.log.rearranging import Rearrangement
from freshet.log.segments.collect import Collected
from freshet.log.segments.export import Export, Exported, hidden_path, write_export, write_parquet
from freshet.log.segments.lines import DurableLines, json_line
from freshet.log.segments.retention import Limits, Retention
from freshet.log.segments.segment import SegmentWriter, read_segment, read_train
from freshet.log.segments.storage import PosixStorage, Storage
from freshet.log.store.records import HeartbeatRecord, LogMeters, StreamMeter
from freshet.log.store.state import QueryRecord, ReaderState
from freshet.log.store.tail import stamped
from freshet.log.versions import StoredVersion, TableVersions, kept_versions, newest_version

__all__ = [
    "Advance",
    "Collected",
    "CursorMoved",
    "Damaged",
    "Deposed",
    "DurableLines",
    "Export",
    "Exported",
    "HeartbeatRecord",
    "Intake",
    "Lagged",
    "Limits",
    "Log",
    "LogFull",
    "LogMeters",
    "LogReader",
    "Malformed",
    "NotSynced",
    "PosixStorage",
    "QueryRecord",
    "ReaderKind",
    "ReaderState",
    "Rearrangement",
    "Receipt",
    "Retention",
    "SegmentWriter",
    "Storage",
    "StoreFailed",
    "StoredVersion",
    "StreamKind",
    "StreamMeter",
    "TableVersions",
    "hidden_path",
    "json_line",
    "kept_versions",
    "newest_version",
    "read_segment",
    "read_train",
    "stamped",
    "write_export",
    "write_parquet",
]
