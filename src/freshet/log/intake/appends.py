"""What sources bring: tuples, rows that are set aside, heartbeats and versions of tables."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from freshet.log.errors import LogFull
from freshet.log.intake.marking import Marking
from freshet.log.segments.retention import Limits
from freshet.log.segments.segment import SegmentWriter, read_segment
from freshet.log.store.records import HeartbeatRecord, KeyNews
from freshet.log.store.state import StreamState
from freshet.log.store.store import Transaction
from freshet.model import ARRIVAL, Segment, SegmentFile
from freshet.model.names import CONTENT

Records: TypeAlias = Mapping[str, Any]
"""What a source remembers, JSON-ready, by its keys; None for what it forgets."""
_NO_RECORDS: Final[Records] = MappingProxyType({})
_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Appends(Marking):
    """The part of a log that takes in what comes from outside."""

    limits: Limits
    _floor: int

    def append(
        self,
        stream: str,
        table: pa.Table,
        *,
        source_position: Mapping[str, Any] | None = None,
        records: Records = _NO_RECORDS,
        dead: Sequence[Mapping[str, Any]] = (),
        late: Sequence[Mapping[str, Any]] = (),
        newest: int | None = None,
        watermark: int | None = None,
        keys: KeyNews | None = None,
    ) -> range:
        """Appends tuples, rows that were set aside, and the source's position. All is durable on return, or nothing.

        Args:
            stream: A declared stream.
            table: Its tuples, arrival last; an arrival before the stream's last one is moved up to it.
            source_position: Where the source continues after a restart.
            records: What the source remembers from now on, by its keys; see :meth:`records`.
            dead: Dead letters, one JSON line each.
            late: Late rows, one JSON line each.
            newest: Newest event time seen, in microseconds.
            watermark: No later tuple is older than this time, in microseconds; None if unknown.
            keys: What it says about the order by key; None: the stream has no ordered key.

        Returns:
            The offsets of the tuples.

        Raises:
            LogFull: The bound is hit or the disk is full; nothing was taken in.
        """
        if not (table.num_rows or dead or late or records or source_position is not None):
            end = self.end(stream)
            return range(end, end)
        with self._intake(stream) as intake:
            why = self.held_back(stream)
            if why is not None:
                raise LogFull(why)
            file: SegmentFile | None = None
            try:
                with _no_room(stream):
                    lengths = intake.write(dead, late)
                    last = max(self._state.stream(stream).arrival, self._floor)
                    file = self._write(stream, _monotone(table, last))
                more = _Arrived(source_position, newest, len(dead), len(late), *lengths, records, keys)
                # What joins remember is reckoned from all their streams as they are then.
                alone = keys is not None and self._is_bounded(stream)
                return self._store.write(lambda tx: self._append(tx, stream, file, more, watermark), alone=alone)
            except LogFull:
                intake.reset()
                if file is not None:
                    self._storage.delete(file.name)
                raise

    def _write(self, stream: str, table: pa.Table) -> SegmentFile | None:
        if not table.num_rows:
            return None
        writer = SegmentWriter(self._storage, self._name())
        writer.add(stream, table)
        return writer.finish()

    def _append(
        self, tx: Transaction, name: str, file: SegmentFile | None, more: _Arrived, watermark: int | None
    ) -> range:
        stream = self._state.stream(name)
        first = tx.draft.get(("next", stream.id), stream.index.end)
        last = 0
        if file is not None:
            self._take_files(tx, [file])
            last = file.members[-1][-1]
        tx.execute(
            "UPDATE streams SET position = coalesce(?, position), newest = coalesce(?, newest),"
            " arrival = max(arrival, ?), dead = dead + ?, late = late + ?, dead_bytes = ?, late_bytes = ? WHERE id = ?",
            (more.position_text, more.newest, last, more.dead, more.late, more.dead_bytes, more.late_bytes, stream.id),
        )
        more.keep_records(tx, stream.id)
        tx.after(lambda: more.apply(stream))
        if watermark is not None:
            self._mark(tx, stream, watermark)
        if more.keys is not None:
            self._mark_key(tx, stream, first, more.keys)
        return range(first, tx.draft.get(("next", stream.id), stream.index.end))

    def adopt(
        self,
        stream: str,
        files: Sequence[SegmentFile],
        *,
        source_position: Mapping[str, Any] | None = None,
        dead: Sequence[Mapping[str, Any]] = (),
        late: Sequence[Mapping[str, Any]] = (),
        newest: int | None = None,
        watermark: int | None = None,
    ) -> range:
        """Like :meth:`append`, for tuples that Spark tasks have written to segment files of this folder.

        Bounds do not stop it, because the work is done. Ask :meth:`held_back` before.

        Args:
            stream: A declared stream.
            files: Files that hold tuples of this stream alone, each with one arrival for all.
            source_position: Where the source continues after a restart.
            dead: Dead letters, one JSON line each.
            late: Late rows, one JSON line each.
            newest: Newest event time seen, in microseconds.
            watermark: No later tuple is older than this time, in microseconds; None if unknown.

        Raises:
            LogFull: The disk is full; nothing was taken in, and the same files may be adopted later.
        """

        def work(tx: Transaction) -> range:
            found = self._state.stream(stream)
            first = tx.draft.get(("next", found.id), found.index.end)
            self._take_files(tx, taken[:-1])
            return range(first, self._append(tx, stream, taken[-1] if taken else None, more, watermark).stop)

        with self._intake(stream) as intake, self._about_to_commit(files):
            last = max(self._state.stream(stream).arrival, self._floor)
            try:
                with _no_room(stream):
                    lengths = intake.write(dead, late)
                    taken = [self._not_before(stream, file, last) for file in files if file.members]
                more = _Arrived(source_position, newest, len(dead), len(late), *lengths, _NO_RECORDS)
                return self._store.write(work)
            except LogFull:
                intake.reset()
                raise

    def _not_before(self, stream: str, file: SegmentFile, last: int) -> SegmentFile:
        """The file; or, if time has moved on since it was written, a copy with no arrival before ``last``."""
        if all(first >= last for *_, first, _ in file.members):
            return file
        writer = SegmentWriter(self._storage, self._name())
        for _, rows, position, length, *_ in file.members:
            segment = Segment(stream, 0, rows, 0, 0, 0, file.name, position, length)
            writer.add(stream, _monotone(read_segment(self._storage, segment, 0, rows), last))
        return writer.finish()

    def last_arrival(self, stream: str) -> int:
        """The arrival, in microseconds, before which no further tuple of a stream can arrive."""
        with self._stream(stream) as found:
            return max(found.arrival, self._floor)

    def append_version(
        self, stream: str, content: pa.Buffer, position: Mapping[str, Any], records: Records = _NO_RECORDS
    ) -> int:
        """Appends a version of a table, one tuple; returns its arrival.

        Its arrival is after the arrival of every tuple in the log, and no later tuple of any stream arrives before it.
        So the arrival of a tuple, and of everything that is made of it, tells which version was there when the tuple
        was taken in.

        Raises:
            LogFull: The disk is full; nothing was taken in.
        """
        with self._no_appends():
            why = self.held_back(stream)
            if why is not None:
                raise LogFull(why)
            with self._lock:
                newest = max(found.arrival for found in self._state.streams.values())
            arrival = max(round(self.now() * 1e6), newest + 1, self._floor + 1)
            ends = pa.py_buffer(np.array([0, content.size], np.int64))
            whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, content])
            version = pa.table({CONTENT: whole, ARRIVAL: pa.array([arrival])})
            with _no_room(stream):
                file = self._write(stream, version)
            more = _Arrived(position, None, 0, 0, 0, 0, records)
            self._store.write(lambda tx: self._append_version(tx, stream, file, more, arrival))
            return arrival

    def _append_version(
        self, tx: Transaction, stream: str, file: SegmentFile | None, more: _Arrived, arrival: int
    ) -> None:
        self._append(tx, stream, file, more, None)
        self.raise_floor(tx, arrival)

    def raise_floor(self, tx: Transaction, arrival: int) -> None:
        """From now on no tuple of any stream arrives before this."""
        tx.execute(
            "INSERT INTO meta VALUES ('floor', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (arrival,)
        )
        tx.after(lambda: setattr(self, "_floor", arrival))

    def heartbeat(self, stream: str, time_us: int, *, lateness_us: int | None = None) -> None:
        """Says that time has come this far and nothing came: the watermark moves on.

        Args:
            stream: A declared stream.
            time_us: The time that is reached, in microseconds.
            lateness_us: For a stream with event time, how much older a later tuple may be. None means that the stream's
                time is the arrival, and no later tuple arrives before it.
        """

        def work(tx: Transaction) -> None:
            found = self._state.stream(stream)
            column = "arrival" if lateness_us is None else "newest"
            reached = f"{column} = max(coalesce({column}, ?), ?)"
            tx.execute(
                f"UPDATE streams SET heartbeats = heartbeats + 1, {reached} WHERE id = ?",
                (time_us, time_us, found.id),
            )
            self._mark(tx, found, time_us - (lateness_us or 0))
            tx.after(lambda: _beat(found, column, time_us))

        # A tuple must not come behind it while its lateness is being judged.
        with self._intake(stream):
            self._store.write(work)

    def heartbeats(self, stream: str, first: int = 0) -> list[HeartbeatRecord]:
        """The watermarks from an offset on, at most one for each offset."""
        found = self._state.stream(stream)
        rows = self._store.rows(
            "SELECT sequence, at, time FROM heartbeats WHERE stream = ? AND at >= ? ORDER BY sequence",
            (found.id, first),
        )
        return [HeartbeatRecord(*row) for row in rows]

    def records(self, stream: str) -> dict[str, Any]:
        """What the source of a stream remembers besides its position, by its keys. Single records change with the rows
        of an append, in the same transaction; the others stay."""
        with self._stream(stream) as found:
            id_ = found.id
        rows = self._store.rows("SELECT key, value FROM records WHERE stream = ?", (id_,))
        return {key: json.loads(value) for key, value in rows}

    def newest(self, stream: str) -> int | None:
        """Newest event time that a stream has seen, in microseconds."""
        with self._stream(stream) as found:
            return found.newest

    def held_back(self, stream: str) -> str | None:
        """Why a stream takes nothing in at present; None if it does."""
        free = self._storage.free_bytes()
        if free < self.limits.min_free_bytes:
            return f"{stream} is held back: {free:,} bytes of disk are free, {self.limits.min_free_bytes:,} must be"
        with self._stream(stream) as found:
            bound, waiting = found.retention.bound_bytes, found.waiting_bytes()
        if bound is not None and waiting >= bound:
            return f"{stream} is held back: {waiting:,} bytes wait for its readers, the bound is {bound:,}"
        return None

    @contextmanager
    def _no_appends(self) -> Iterator[None]:
        """Nothing comes into any stream meanwhile."""
        with ExitStack() as held:
            with self._lock:
                intakes = [self._intakes[name] for name in sorted(self._intakes)]
            for intake in intakes:
                held.enter_context(intake.lock)
            yield


@dataclass(frozen=True, slots=True)
class _Arrived:
    """What an append changes besides the segments."""

    position: Mapping[str, Any] | None
    newest: int | None
    dead: int
    late: int
    dead_bytes: int
    late_bytes: int
    records: Records
    keys: KeyNews | None = None

    def keep_records(self, tx: Transaction, stream: int) -> None:
        """Writes the records that changed, and deletes those that are None."""
        if not self.records:
            return
        kept = [(stream, key, json.dumps(value)) for key, value in self.records.items() if value is not None]
        gone = [(stream, key) for key, value in self.records.items() if value is None]
        tx.executemany(
            "INSERT INTO records VALUES (?, ?, ?) ON CONFLICT (stream, key) DO UPDATE SET value = excluded.value", kept
        )
        tx.executemany("DELETE FROM records WHERE stream = ? AND key = ?", gone)

    @property
    def position_text(self) -> str | None:
        return None if self.position is None else json.dumps(dict(self.position))

    def apply(self, stream: StreamState) -> None:
        if self.position is not None:
            stream.position = dict(self.position)
        if self.newest is not None:
            stream.newest = self.newest
        stream.dead += self.dead
        stream.late += self.late
        stream.dead_bytes, stream.late_bytes = self.dead_bytes, self.late_bytes


def _beat(stream: StreamState, column: str, time: int) -> None:
    stream.heartbeats += 1
    setattr(stream, column, max(getattr(stream, column) or time, time))


def _monotone(table: pa.Table, last: int) -> pa.Table:
    """Makes arrivals never go back within a stream, whatever the clocks of its sources did."""
    if not table.num_rows or table.schema.names[-1] != ARRIVAL:
        return table
    arrivals = table.column(ARRIVAL).to_numpy()
    if arrivals[0] >= last and np.all(arrivals[1:] >= arrivals[:-1]):
        return table
    raised = np.maximum.accumulate(np.maximum(arrivals, last))
    return table.set_column(table.num_columns - 1, table.schema.field(ARRIVAL), pa.array(raised))


@contextmanager
def _no_room(stream: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise LogFull(f"{stream} is held back: no room for it on disk ({error.strerror})") from error
        raise
