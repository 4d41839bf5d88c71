"""What a log knows in memory: a mirror of what its store has committed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from freshet.log import old_names
from freshet.log.errors import NoStream
from freshet.log.kinds import ReaderKind, StreamKind
from freshet.log.marks import LetGo, Marks, PastRows
from freshet.log.segments.index import StreamIndex
from freshet.log.segments.retention import Retention
from freshet.log.store.store import NEEDED, PARKED, unpack_members, unpack_offsets
from freshet.model import FreshetError, Segment
from freshet.quality.disorder import Disorder

_NUMBERS: Final = ("arrival", "newest", "dead", "dead_bytes", "late", "late_bytes", "heartbeats")

SelectRows = Callable[[str], Iterable[tuple[Any, ...]]]


@dataclass(slots=True)
class ReaderState:
    """A registered reader: its cursor, what it stores for itself, whether it is at work, its purpose and its query. A
    reader that is not at work is either quarantined and holds data up to the bound, or parked and holds none."""

    name: str
    stream: str
    next: int
    needed: bool = True
    state: dict[str, Any] = field(default_factory=dict)
    parked: bool = False
    kind: ReaderKind = "operator"
    owner: str = ""
    """The query that it belongs to, if it belongs to one alone."""

    @property
    def quarantined(self) -> bool:
        """Whether it is neither at work nor parked."""
        return not self.needed and not self.parked


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """What is known of a query between runs: what decides its answers, and what others keep with it."""

    fingerprint: str
    state: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class StreamState:
    """A stream of the log."""

    id: int
    name: str
    retention: Retention
    index: StreamIndex
    arrival: int = 0
    """Arrival of its last tuple, or of a later heartbeat: no later arrival is before it."""
    position: dict[str, Any] | None = None
    newest: int | None = None
    """Newest event time seen."""
    dead: int = 0
    dead_bytes: int = 0
    late: int = 0
    late_bytes: int = 0
    heartbeats: int = 0
    clock: str | None = None
    """What its watermarks are about: the column of its event time, or the arrival."""
    kind: StreamKind = "stream"
    marks: Marks = field(default_factory=Marks)
    ordered: str | None = None
    """The column that its key marks are about."""
    disorder: bytes | None = None
    """What is known of its disorder by that column, packed."""
    order: Disorder | None = None
    """The same, unpacked when it is first needed."""
    past: int = 0
    """Number of tuples that came past the key mark."""
    key_marks: Marks = field(default_factory=Marks)
    past_rows: PastRows = field(default_factory=PastRows)
    let_go: dict[str, LetGo] = field(default_factory=dict)
    """By join: how far its memory has raised the marks of its streams, and the tuples that this left out."""
    readers: dict[str, ReaderState] = field(default_factory=dict)

    def known_order(self) -> Disorder:
        """What is known of its disorder by its ordered key."""
        if self.order is None:
            self.order = Disorder() if self.disorder is None else Disorder.unpacked(self.disorder)
        return self.order

    def take_key_mark(self, at: int, key: int | None, past: Iterable[int]) -> None:
        """Takes an entry: the mark after the tuples before an offset, and which of the last ones were past it."""
        if key is not None:
            self.key_marks.add(at, key)
        self.past_rows.add(past)

    def take_let_go(self, join: str, at: int, key: int | None, past: Iterable[int]) -> None:
        """Takes an entry: from an offset on a join has raised the mark, and it has let some tuples before it go. If it
        says neither, what comes into the stream is reckoned."""
        known = self.let_go.setdefault(join, LetGo())
        if key is not None:
            known.marks.add(at, key)
        offsets = list(past)
        known.past.add(offsets)
        known.reckoned = known.reckoned or (key is None and not offsets)

    def waiting_bytes(self) -> int:
        """Bytes that a reader at work has not consumed yet."""
        cursors = [reader.next for reader in self.readers.values() if reader.needed and reader.kind != "window"]
        return self.index.bytes(min(cursors), self.index.end) if cursors else 0


@dataclass(slots=True)
class RowState:
    """A row of the store: members that lie in one file, and how many of them are still kept."""

    file: str
    bytes: int
    appended: int
    live: int
    live_bytes: int


class LogState:
    """All streams, readers, queries and files."""

    def __init__(self) -> None:
        self.streams: dict[str, StreamState] = {}
        self.readers: dict[str, ReaderState] = {}
        self.queries: dict[str, QueryRecord] = {}
        self.rows: dict[int, RowState] = {}
        self.files: Counter[str] = Counter()
        """How many rows lie in a file."""
        self.pending: set[str] = set()
        """Files that are about to be committed."""
        self.retired: dict[str, float] = {}
        """Files with members that were moved elsewhere, and when they may go: a unit may still be reading them."""
        self.sequence = 0
        self._by_id: dict[int, StreamState] = {}

    def catch_up(self, rows: SelectRows) -> None:
        """Reads what the store has and memory does not: the first time, everything."""
        # A folder of an earlier version stays as it is if it is only read.
        has_kinds = any(column[1] == "kind" for column in rows("PRAGMA table_info(readers)"))
        self._catch_up_streams(rows, has_kinds)
        self._catch_up_readers(rows, has_kinds)
        if has_kinds:
            found = rows("SELECT name, fingerprint, state FROM queries")
            self.queries = {name: QueryRecord(text, json.loads(state)) for name, text, state in found}
        for sequence, file, size, appended, members in rows(
            f"SELECT sequence, file, bytes, appended, members FROM segments WHERE sequence >= {self.sequence}"
            " ORDER BY sequence"
        ):
            self.add_row(sequence, file, size, appended, unpack_members(members))
        for id_, at, time in rows(
            f"SELECT stream, at, time FROM heartbeats WHERE sequence >= {self.sequence} ORDER BY sequence"
        ):
            if id_ in self._by_id:
                self._by_id[id_].marks.add(at, time)
        self._catch_up_keys(rows)
        ((self.sequence,),) = rows("SELECT value FROM meta WHERE key = 'sequence'")

    def _catch_up_keys(self, rows: SelectRows) -> None:
        columns = {row[1] for row in rows("PRAGMA table_info(key_marks)")}
        if not columns:
            return
        has_joins = "joined" in columns
        base = " AND joined = ''" if has_joins else ""
        levels = (
            f"SELECT stream, at, key, past, joined FROM key_marks WHERE sequence >= {self.sequence} AND joined <> ''"
            " ORDER BY sequence"
        )
        for id_, ordered, disorder, past in rows("SELECT id, ordered, disorder, past FROM streams"):
            found = self._by_id[id_]
            found.ordered, found.disorder, found.past, found.order = ordered, disorder, past, None
        for id_, at, key, past in rows(
            f"SELECT stream, at, key, past FROM key_marks WHERE sequence >= {self.sequence}{base} ORDER BY sequence"
        ):
            if id_ in self._by_id:
                self._by_id[id_].take_key_mark(at, key, unpack_offsets(past))
        for id_, at, key, past, join in rows(levels) if has_joins else ():
            if id_ in self._by_id:
                self._by_id[id_].take_let_go(join, at, key, unpack_offsets(past))

    def _catch_up_readers(self, rows: SelectRows, has_kinds: bool) -> None:
        for stream in self.streams.values():
            stream.readers.clear()
        self.readers.clear()
        for name, stream_name, cursor, needed, state, *kind in rows(
            f"SELECT readers.name, streams.name, readers.next, needed, state{', readers.kind, owner' * has_kinds}"
            " FROM readers JOIN streams ON streams.id = readers.stream"
        ):
            told = (needed == NEEDED, json.loads(state), needed == PARKED)
            kinds = kind or old_names.reader_kind(name, stream_name)
            self.add_reader(ReaderState(name, stream_name, cursor, *told, *kinds))

    def _catch_up_streams(self, rows: SelectRows, has_kinds: bool) -> None:
        columns = ("id", "name", "kind" if has_kinds else "NULL", "retention", "oldest", "position", *_NUMBERS)
        found = list(rows(f"SELECT {', '.join(columns)} FROM streams"))
        for gone in self._by_id.keys() - {row[0] for row in found}:
            self.drop_rows(self.drop_stream(self._by_id[gone]))
        for id_, name, kind, retention, oldest, position, *numbers in found:
            rules = Retention(**json.loads(retention))
            if id_ not in self._by_id:
                self.add_stream(StreamState(id_, name, rules, StreamIndex(name, oldest)))
            stream = self._by_id[id_]
            stream.retention, stream.kind = rules, kind or old_names.stream_kind(name)
            stream.position = None if position is None else json.loads(position)
            for attribute, number in zip(_NUMBERS, numbers, strict=True):
                setattr(stream, attribute, number)
            self.drop_rows(self.drop_segments(stream, oldest))

    def stream(self, name: str) -> StreamState:
        """A stream by its name."""
        found = self.streams.get(name)
        if found is None:
            raise NoStream(name, self.streams)
        return found

    def reader(self, name: str) -> ReaderState:
        """A registered reader by its name."""
        found = self.readers.get(name)
        if found is None:
            raise FreshetError(f"the log has no reader {name}")
        return found

    def add_stream(self, stream: StreamState) -> None:
        """Adds a stream."""
        self.streams[stream.name] = self._by_id[stream.id] = stream

    def drop_stream(self, stream: StreamState) -> list[int]:
        """Forgets a stream with its readers; returns the rows that are then empty."""
        for reader in list(stream.readers):
            self.drop_reader(reader)
        del self.streams[stream.name], self._by_id[stream.id]
        return self.drop_segments(stream, stream.index.end)

    def add_reader(self, reader: ReaderState) -> None:
        """Adds a reader."""
        self.readers[reader.name] = self.stream(reader.stream).readers[reader.name] = reader

    def drop_reader(self, name: str) -> None:
        """Forgets a reader."""
        reader = self.readers.pop(name)
        del self.streams[reader.stream].readers[name]

    def forget_levels(self, join: str) -> None:
        """Forgets what a join let go."""
        for stream in self.streams.values():
            stream.let_go.pop(join, None)

    def lapse(self, join: str) -> None:
        """What comes for a join is not reckoned any more."""
        for stream in self.streams.values():
            if join in stream.let_go:
                stream.let_go[join].reckoned = False

    def forget_query(self, name: str) -> None:
        """Forgets what is known of a query."""
        self.queries.pop(name, None)

    def add_row(self, sequence: int, file: str, size: int, appended: int, members: Sequence[Sequence[int]]) -> None:
        """Takes in a row of the store; members that retention has removed do not count."""
        live = live_bytes = 0
        for place, (id_, first, rows, position, length, arrival, last) in enumerate(members):
            stream = self.keeper(id_, first)
            if stream is None:
                continue
            segment = Segment(stream.name, first, rows, sequence + place, arrival, last, file, position, length)
            stream.index.add(segment, appended, sequence)
            stream.arrival = max(stream.arrival, last)
            live += 1
            live_bytes += length
        self.rows[sequence] = RowState(file, size, appended, live, live_bytes)
        self.files[file] += 1

    def keeper(self, id_: int, first: int) -> StreamState | None:
        """The stream that keeps a member; None if retention has removed it."""
        stream = self._by_id.get(id_)
        return None if stream is None or first < stream.index.oldest else stream

    def move_row(self, sequence: int, file: str, members: Sequence[Sequence[int]]) -> str | None:
        """Records that the rest of a row now lies in another file; returns the old file if nothing else is in it."""
        row = self.rows[sequence]
        for id_, first, _, position, *_ in members:
            stream = self.keeper(id_, first)
            if stream is not None:
                stream.index.replace(replace(stream.index.at(first), file=file, position=position))
        old, row.file, row.bytes = row.file, file, row.live_bytes
        self.files[file] += 1
        return self._leave(old)

    def drop_segments(self, stream: StreamState, below: int) -> list[int]:
        """Drops the segments of a stream that end at or below an offset; returns the rows that are then empty."""
        spent = []
        stream.marks.drop_before(below)
        stream.key_marks.drop_before(below)
        stream.past_rows.drop_before(below)
        for known in stream.let_go.values():
            known.marks.drop_before(below)
            known.past.drop_before(below)
        for number, length in stream.index.drop_below(below):
            row = self.rows[number]
            row.live -= 1
            row.live_bytes -= length
            if not row.live:
                spent.append(number)
        return spent

    def spent(self, floors: dict[str, int]) -> list[int]:
        """Rows that are empty when each stream is kept from its floor on."""
        less: Counter[int] = Counter()
        for name, floor in floors.items():
            index = self.streams[name].index
            for segment, row in zip(index.segments, index.rows, strict=True):
                if segment.end > floor:
                    break
                less[row] += 1
        return [row for row, kept in self.rows.items() if kept.live <= less.get(row, 0)]

    def drop_rows(self, rows: Iterable[int]) -> list[str]:
        """Forgets rows; returns the files that then hold no row."""
        left = (self._leave(self.rows.pop(row).file) for row in rows)
        return [file for file in left if file is not None]

    def _leave(self, file: str) -> str | None:
        self.files[file] -= 1
        if self.files[file]:
            return None
        del self.files[file]
        return file
