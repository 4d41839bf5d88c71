"""Versions of tables: every content that a table had is a tuple of a stream of its own, as long as it is needed.

The stream has one reader of the same name; its cursor is where the kept versions begin. A version is dropped when a
newer one exists and no kept tuple that may still be looked up is older than that. So a replay finds what was found the
first time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from freshet.log.errors import Lagged
from freshet.log.log import Log
from freshet.log.readable import Readable
from freshet.log.segments.retention import Retention
from freshet.log.segments.segment import read_segment
from freshet.model import ARRIVAL, FreshetError, Segment, Train, version_stream
from freshet.model.names import CONTENT

_NOTHING: Final = pa.table({ARRIVAL: pa.array([], pa.int64())})
_KEPT: Final = Retention(history_age=0.0, history_bytes=0, bound_bytes=None)

Least = MutableMapping[tuple[str, int], int]
"""The smallest arrival in the segments that were looked at, by file and position."""


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version in a segment file."""

    folder: Path
    segment: Segment

    @property
    def key(self) -> tuple[Path, Segment]:
        """A key that no other version of any table has."""
        return self.folder, self.segment

    @property
    def arrival(self) -> int:
        """When the version came, in microseconds."""
        return self.segment.arrival

    def read(self) -> pa.Table:
        """Its rows, memory-mapped.

        Raises:
            FileNotFoundError: Nobody needed it any more.
        """
        return _decoded(read_segment(self.folder, self.segment, self.segment.first, self.segment.end))


class TableVersions:
    """The versions of a table in a log.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Log.open(Path(folder)) as log:
    ...     versions = TableVersions(log, "hosts")
    ...     versions.put(pa.table({"host": ["a"]})), versions.put(pa.table({"host": ["a"]}))
    ...     versions.put(pa.table({"host": ["a", "b"]})), versions.kept.rows, versions.newest().num_rows
    (True, False)
    (True, 2, 2)
    """

    def __init__(self, log: Log, table: str) -> None:
        self._log = log
        self.table = table
        self.stream = version_stream(table)
        self._least: Least = {}
        self._begin()

    def _begin(self) -> None:
        self._log.declare(self.stream, _KEPT, kind="versions")
        self._log.start_reader(self.stream, self.stream, kind="versions")

    @property
    def kept(self) -> Train:
        """The kept versions, one segment each."""
        return kept_versions(self._log, self.stream)

    @property
    def number(self) -> int:
        """How many versions there have been."""
        return self._log.end(self.stream)

    def newest(self) -> pa.Table | None:
        """The rows of the newest version; None if there is none yet."""
        return newest_version(self._log, self.table)

    def put(
        self, rows: pa.Table, *, position: Mapping[str, Any] | None = None, records: Mapping[str, Any] | None = None
    ) -> bool:
        """Makes rows the newest version, unless they equal it; returns whether they were new.

        If the columns have changed, no later lookup could use the old versions, and they are
        forgotten.

        Args:
            rows: The rows.
            position: Where the source of the table continues after a restart, in the same transaction.
            records: What the source remembers from now on, by its keys.

        Raises:
            LogFull: There is no room on the disk.
        """
        content = _encoded(rows)
        told = hashlib.sha256(content).hexdigest()
        known = self._log.source_position(self.stream) or {}
        source = known.get("source") if position is None else dict(position)
        if known.get("hash") == told:
            if position is not None:
                self._log.append(
                    self.stream, _NOTHING, source_position={**known, "source": source}, records=records or {}
                )
            return False
        columns = str(rows.schema)
        if known.get("columns", columns) != columns:
            self._log.forget(self.stream)
            self._begin()
        self._log.append_version(
            self.stream, content, {"hash": told, "columns": columns, "source": source}, records or {}
        )
        return True

    def source(self, schema: pa.Schema) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Position and records of the table's source; None if there are none for these columns."""
        known = self._log.source_position(self.stream) or {}
        if known.get("columns") != str(schema) or known.get("source") is None:
            return None
        return known["source"], self._log.records(self.stream)

    def release(self, ordered: Iterable[str], others: Iterable[str] = ()) -> int:
        """Drops versions that no tuple needs; returns how many.

        Args:
            ordered: Streams with tuples that may be looked up, in which arrivals never go back.
            others: Other streams with tuples that may be looked up: outputs, queues and states.
        """
        kept = self.kept
        if len(kept.segments) < 2:
            return 0
        streams = (tuple(ordered), tuple(others))
        with suppress(Lagged, FileNotFoundError):  # it may be tidied up in between
            self._earliest(*streams)  # most of the reading, before the log has to be held
        with self._log.still():
            least = self._earliest(*streams)
        if least is None:
            needed = kept.segments[-1].first
        else:
            needed = max((each.first for each in kept.segments if each.arrival <= least), default=kept.first)
        if needed > kept.first:
            self._log.advance(self.stream, self.stream, needed)
        return needed - kept.first

    def _earliest(self, ordered: Iterable[str], others: Iterable[str]) -> int | None:
        """The smallest arrival in streams; None if they hold nothing."""
        looked: Least = {}
        arrivals = [self._first(stream) for stream in ordered]
        arrivals += [self._smallest(stream, looked) for stream in others]
        self._least = looked
        return min((arrival for arrival in arrivals if arrival is not None), default=None)

    def _first(self, stream: str) -> int | None:
        oldest, end = self._log.oldest(stream), self._log.end(stream)
        return self._log.arrival(stream, oldest) if oldest < end else None

    def _smallest(self, stream: str, least: Least) -> int | None:
        """The smallest arrival in a stream; it looks at each segment only once."""
        if stream not in self._log.streams():
            return None
        train = self._log.train(stream, self._log.oldest(stream), self._log.end(stream))
        for segment in train.segments:
            place = (segment.file, segment.position)
            least[place] = self._least[place] if place in self._least else self._look(segment)
        return min((least[segment.file, segment.position] for segment in train.segments), default=None)

    def _look(self, segment: Segment) -> int:
        found = read_segment(self._log.folder, segment, segment.first, segment.end)
        arrival: int = pc.min(found.column(ARRIVAL)).as_py()
        return arrival


def newest_version(log: Readable, table: str) -> pa.Table | None:
    """The rows of the newest version of a table, in one's own log or in another process's; None if there is none."""
    stream = version_stream(table)
    end = log.end(stream)
    return _decoded(log.read(stream, end - 1, end)) if end else None


def kept_versions(log: Log, stream: str) -> Train:
    """The versions of a table that are kept, one segment each, from the stream that holds them."""
    while True:
        first = log.cursor(stream)
        if first is None:
            raise FreshetError(f"{stream} has no version in the log")
        try:
            return log.train(stream, first, log.end(stream))
        except Lagged:
            if log.cursor(stream) == first:  # else it was released in between
                raise


def _decoded(version: pa.Table) -> pa.Table:
    with pa.ipc.open_stream(version.column(CONTENT)[0].as_buffer()) as reader:
        return reader.read_all()


def _encoded(rows: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    table = rows.combine_chunks()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
