"""The log of an application: streams, cursors, commits."""

from __future__ import annotations

import errno
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from freshet.log.asides import Asides
from freshet.log.collect import Collected, collect
from freshet.log.compact import compact
from freshet.log.cursors import Cursors
from freshet.log.errors import LogFull
from freshet.log.examine import examine, told
from freshet.log.index import StreamIndex
from freshet.log.lock import OwnerLock
from freshet.log.private import make_folder
from freshet.log.records import Heartbeat, LogMeters, StreamMeter
from freshet.log.retention import Limits, Retention
from freshet.log.segment import SegmentWriter, read_segment
from freshet.log.state import LogState, StreamState
from freshet.log.storage import PosixStorage
from freshet.log.store import Member, Store, Transaction, pack_members
from freshet.log.tail import stamped
from freshet.model import ARRIVAL, Commit, FreshetError, Segment, SegmentFile, UserError
from freshet.model.names import CONTENT
from freshet.model.places import check_local

_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_SEQUENCE: Final = ("sequence", "")


class Log(Cursors):
    """The owner's side of a state folder; every method may be called from any thread.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Log.open(Path(folder)) as log:
    ...     log.declare("packets", Retention())
    ...     log.start_reader("q.filter_1", "packets")
    ...     log.append("packets", pa.table({"size": [40, 1500], ARRIVAL: [1, 2]}))
    ...     log.commit([Commit(cursors=(("q.filter_1", "packets", 0, 2),))])
    ...     log.cursor("q.filter_1"), log.read("packets", 1, 2).to_pylist()
    0
    range(0, 2)
    (2, [{'size': 1500, '__arrival': 2}])
    """

    def __init__(self, state: Path, limits: Limits, now: Callable[[], float], lock: OwnerLock) -> None:
        self._owner = lock
        self.limits = limits
        self.now = now
        self.folder: Final = state / "segments"
        self._asides: Final = {kind: state / kind for kind in ("dead", "late")}
        for folder in (self.folder, *self._asides.values()):
            make_folder(folder)
        self._storage: PosixStorage = PosixStorage(self.folder)
        self._store = Store(state / "store.db")
        self.epoch: Final = self._store.epoch
        lock.sign(self.epoch)
        self._lock = self._store.lock
        self._state = LogState()
        with told(state / "store.db"):
            self._state.catch_up(self._store.rows)
        for name, clock in self._store.rows("SELECT name, clock FROM streams"):
            self._state.streams[name].clock = clock
        self._intakes: dict[str, Asides] = {}
        for stream in self._state.streams.values():
            self._intakes[stream.name] = Asides(self._asides, stream)
        self._floor = next((value for (value,) in self._store.rows("SELECT value FROM meta WHERE key = 'floor'")), 0)
        self._numbers = itertools.count()
        self._collecting = threading.Lock()
        self._closed = False

    @classmethod
    def open(cls, state: Path, *, limits: Limits | None = None, now: Callable[[], float] = time.time) -> Log:
        """Takes the single-owner lock of a state folder (made if needed) and begins a new epoch.

        Raises:
            UserError: Another process owns the folder, or it has another format.
            Damaged: Its store is damaged or has lost commits; nothing in the folder has changed.
        """
        check_local(state, f"state folder {state}")
        try:
            make_folder(state)
        except (FileExistsError, NotADirectoryError):
            raise UserError(f"{state} is not a folder; choose another state folder") from None
        lock = OwnerLock(state / "lock")
        try:
            examine(state)
            return cls(state, limits or Limits(), now, lock)
        except BaseException:
            lock.release()
            raise

    def close(self) -> None:
        """Closes the log and gives the lock up."""
        if self._closed:
            return
        self._closed = True
        self._store.close()
        for intake in self._intakes.values():
            intake.close()
        self._owner.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def declare(self, stream: str, retention: Retention | None = None, clock: str | None = None) -> None:
        """Adds a stream, or changes the retention of one that is there.

        Args:
            stream: Its name.
            retention: What it keeps.
            clock: What its watermarks are about: the column of its event time, or the arrival. Where that is not what
                it was, the watermarks that are there say nothing and are forgotten. None: as it was.
        """
        rules = retention or Retention()

        def work(tx: Transaction) -> None:
            (id_,) = tx.execute(
                "INSERT INTO streams (name, retention) VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET retention = excluded.retention RETURNING id",
                (stream, json.dumps(asdict(rules))),
            ).fetchone()
            tx.after(lambda: self._declared(stream, id_, rules))
            known = self._state.streams.get(stream)
            if clock is not None and (known is None or known.clock != clock):
                tx.execute("UPDATE streams SET clock = ?, newest = NULL WHERE id = ?", (clock, id_))
                tx.execute("DELETE FROM heartbeats WHERE stream = ?", (id_,))
                tx.after(lambda: _set_clock(self._state.streams[stream], clock))

        self._store.write(work, alone=True)

    def _declared(self, name: str, id_: int, retention: Retention) -> None:
        known = self._state.streams.get(name)
        if known is not None:
            known.retention = retention
            return
        stream = StreamState(id_, name, retention, StreamIndex(name))
        self._state.add_stream(stream)
        self._intakes[name] = Asides(self._asides, stream)

    def forget(self, stream: str) -> None:
        """Drops a stream with its readers, its dead letters and late rows; :meth:`collect` deletes its files."""

        def work(tx: Transaction) -> None:
            found = self._state.stream(stream)
            tx.execute("DELETE FROM streams WHERE id = ?", (found.id,))
            tx.execute("DELETE FROM readers WHERE stream = ?", (found.id,))
            tx.execute("DELETE FROM heartbeats WHERE stream = ?", (found.id,))
            tx.after(lambda: self._forgotten(found))

        with self._intake(stream) as intake:
            self._store.write(work, alone=True)
            intake.delete()

    def _forgotten(self, stream: StreamState) -> None:
        self._state.drop_stream(stream)
        del self._intakes[stream.name]

    def append(
        self,
        stream: str,
        table: pa.Table,
        *,
        source_position: Mapping[str, Any] | None = None,
        dead: Sequence[Mapping[str, Any]] = (),
        late: Sequence[Mapping[str, Any]] = (),
        newest: int | None = None,
        watermark: int | None = None,
    ) -> range:
        """Appends tuples, what was set aside with them, and how far the source is; all durable at return, or none.

        Args:
            stream: A declared stream.
            table: Its tuples, arrival last; an arrival before the stream's last one is moved up to it.
            source_position: Where the source goes on after a restart.
            dead: Dead letters, one JSON line each.
            late: Late rows, one JSON line each.
            newest: Newest event time seen, in microseconds.
            watermark: No tuple that comes later is from before this time, in microseconds; None: nobody knows.

        Returns:
            The offsets of the tuples.

        Raises:
            LogFull: The bound is hit or the disk is full; nothing was taken in.
        """
        if not (table.num_rows or dead or late or source_position is not None):
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
                more = _Arrived(source_position, newest, len(dead), len(late), *lengths)
                return self._store.write(lambda tx: self._append(tx, stream, file, more, watermark))
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
        tx.after(lambda: more.apply(stream))
        if watermark is not None:
            self._mark(tx, stream, watermark)
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
        """As :meth:`append`, with tuples that others (tasks of Spark) have written to segment files of this folder.

        Bounds do not stop it: the work is done. Ask :meth:`held_back` before.

        Args:
            stream: A declared stream.
            files: Files that hold tuples of this stream alone, each with one arrival for all.
            source_position: Where the source goes on after a restart.
            dead: Dead letters, one JSON line each.
            late: Late rows, one JSON line each.
            newest: Newest event time seen, in microseconds.
            watermark: No tuple that comes later is from before this time, in microseconds; None: nobody knows.

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
                more = _Arrived(source_position, newest, len(dead), len(late), *lengths)
                return self._store.write(work)
            except LogFull:
                intake.reset()
                raise

    def _not_before(self, stream: str, file: SegmentFile, last: int) -> SegmentFile:
        """The file, or where time has moved on since it was written a copy whose tuples do not arrive before it did."""
        if all(first >= last for *_, first, _ in file.members):
            return file
        writer = SegmentWriter(self._storage, self._name())
        for _, rows, position, length, *_ in file.members:
            segment = Segment(stream, 0, rows, 0, 0, 0, file.name, position, length)
            writer.add(stream, _monotone(read_segment(self._storage, segment, 0, rows), last))
        return writer.finish()

    def _name(self) -> str:
        return stamped(f"append-{self.epoch}-{next(self._numbers)}", self.commits)

    @property
    def commits(self) -> int:
        """Transactions that are durable, in all runs; :func:`~freshet.log.tail.stamped` puts it into names of files."""
        return self._store.commits

    def last_arrival(self, stream: str) -> int:
        """Arrival, in microseconds, before which no tuple of a stream can arrive any more."""
        with self._stream(stream) as found:
            return max(found.arrival, self._floor)

    def append_version(self, stream: str, content: pa.Buffer, position: Mapping[str, Any]) -> int:
        """Appends a version of a table, one tuple; returns its arrival.

        It is after the arrival of every tuple in the log, and no tuple that is appended later, to whatever stream,
        arrives before it. So the arrival of a tuple, and of all that is made of it, tells which version was there when
        it was taken in.

        Raises:
            LogFull: The disk is full; nothing was taken in.
        """
        with ExitStack() as held:
            with self._lock:
                intakes = [self._intakes[name] for name in sorted(self._intakes)]
            for intake in intakes:
                held.enter_context(intake.lock)
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
            self._store.write(lambda tx: self._append_version(tx, stream, file, position, arrival))
            return arrival

    def _append_version(
        self, tx: Transaction, stream: str, file: SegmentFile | None, position: Mapping[str, Any], arrival: int
    ) -> None:
        self._append(tx, stream, file, _Arrived(position, None, 0, 0, 0, 0), None)
        tx.execute(
            "INSERT INTO meta VALUES ('floor', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (arrival,)
        )
        tx.after(lambda: setattr(self, "_floor", arrival))

    def heartbeat(self, stream: str, time_us: int, *, lateness_us: int | None = None) -> None:
        """Says that time has come so far and nothing came: the watermark moves on.

        Args:
            stream: A declared stream.
            time_us: The time that is reached, in microseconds.
            lateness_us: Of a stream with event time: tuples may come that are older by so much. None: the stream's
                time is the arrival, and no tuple after this arrives before it.
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

        # Tuples whose lateness is being judged must not come behind it.
        with self._intake(stream):
            self._store.write(work)

    def _mark(self, tx: Transaction, stream: StreamState, time: int) -> None:
        """Enters a watermark at the end of a stream, where it is news."""
        newest = tx.draft.get(("watermark", stream.id), stream.marks.newest)
        if newest is not None and time <= newest:
            return
        at = tx.draft.get(("next", stream.id), stream.index.end)
        if tx.draft.get(("marked", stream.id), stream.marks.offset) == at:
            # Of those at one offset the newest says all that the others said.
            tx.execute("DELETE FROM heartbeats WHERE stream = ? AND at = ?", (stream.id, at))
        tx.draft["watermark", stream.id], tx.draft["marked", stream.id] = time, at
        tx.execute("INSERT INTO heartbeats VALUES (?, ?, ?, ?)", (self._sequence(tx, 1), stream.id, at, time))
        tx.after(lambda: _marked(stream, at, time))

    def heartbeats(self, stream: str, first: int = 0) -> list[Heartbeat]:
        """The watermarks that were entered from an offset on, at most one for each offset."""
        found = self._state.stream(stream)
        rows = self._store.rows(
            "SELECT sequence, at, time FROM heartbeats WHERE stream = ? AND at >= ? ORDER BY sequence",
            (found.id, first),
        )
        return [Heartbeat(*row) for row in rows]

    def source_position(self, stream: str) -> dict[str, Any] | None:
        """Where the source of a stream goes on."""
        with self._stream(stream) as found:
            return found.position

    def newest(self, stream: str) -> int | None:
        """Newest event time that a stream has seen, in microseconds."""
        with self._stream(stream) as found:
            return found.newest

    def held_back(self, stream: str) -> str | None:
        """Why a stream takes nothing in at present; None: it does."""
        free = self._storage.free_bytes()
        if free < self.limits.min_free_bytes:
            return f"{stream} is held back: {free:,} bytes of disk are free, {self.limits.min_free_bytes:,} must be"
        with self._stream(stream) as found:
            bound, waiting = found.retention.bound_bytes, found.waiting_bytes()
        if bound is not None and waiting >= bound:
            return f"{stream} is held back: {waiting:,} bytes wait for its readers, the bound is {bound:,}"
        return None

    def commit(self, results: Sequence[Commit]) -> None:
        """Makes finished units real, all of them in one transaction, in the order given.

        Bounds do not stop a commit (its work is done; ask :meth:`held_back` of what it writes before starting it).

        Raises:
            CursorMoved: A range does not begin at its reader's cursor; nothing took effect.
            LogFull: The disk is full; nothing took effect, and the same commit may be tried again.
        """
        files = [file for result in results for file in result.files]

        def work(tx: Transaction) -> None:
            # Files first: a unit of several jobs may let go of state that an earlier one of them has written.
            self._take_files(tx, files)
            for reader, stream, first, end in (move for result in results for move in result.cursors):
                self._move(tx, reader, stream, first, end)
            for stream, mark in (entry for result in results for entry in result.watermarks):
                self._mark(tx, self._state.stream(stream), mark)
            moved = {str(name): cursor for (kind, name), cursor in tx.draft.items() if kind == "cursor"}
            tx.executemany("UPDATE readers SET next = ? WHERE name = ?", [(at, name) for name, at in moved.items()])
            tx.after(lambda: self._moved(moved))

        with self._about_to_commit(files):
            self._store.write(work)

    @contextmanager
    def _about_to_commit(self, files: Sequence[SegmentFile]) -> Iterator[None]:
        """Keeps files from being taken for orphans, and refuses those that are not what they should be."""
        names = {file.name for file in files}
        with self._lock:
            self._state.pending |= names
        try:
            for file in files:
                size = self._storage.size(file.name)
                if file.members and size != file.bytes:
                    raise FreshetError(
                        f"segment file {file.name} has {size} bytes, not {file.bytes}; its unit must run again"
                    )
            yield
        finally:
            with self._lock:
                self._state.pending -= names

    def _take_files(self, tx: Transaction, files: Sequence[SegmentFile]) -> None:
        """Gives offsets and sequence numbers to the members of files."""
        appended = round(self.now() * 1e6)
        for file in files:
            if not file.members:
                continue
            if file.name in self._state.files:
                raise FreshetError(f"segment file {file.name} is in the log already")
            sequence = self._sequence(tx, len(file.members))
            members = [self._take_member(tx, *member) for member in file.members]
            tx.execute(
                "INSERT INTO segments VALUES (?, ?, ?, ?, ?)",
                (sequence, file.name, file.bytes, appended, pack_members(members)),
            )
            tx.after(self._taken(sequence, file, appended, members))

    def _take_member(
        self,
        tx: Transaction,
        name: str,
        rows: int,
        position: int,
        length: int,
        arrival: int,
        last: int,
    ) -> Member:
        stream = self._state.stream(name)
        first = tx.draft.get(("next", stream.id), stream.index.end)
        tx.draft["next", stream.id] = first + rows
        return stream.id, first, rows, position, length, arrival, last

    def _taken(self, sequence: int, file: SegmentFile, appended: int, members: list[Member]) -> Callable[[], None]:
        return lambda: self._state.add_row(sequence, file.name, file.bytes, appended, members)

    def _sequence(self, tx: Transaction, count: int) -> int:
        sequence = tx.draft.get(_SEQUENCE, self._state.sequence)
        tx.draft[_SEQUENCE] = after = sequence + count
        tx.execute("UPDATE meta SET value = ? WHERE key = 'sequence'", (after,))
        tx.after(lambda: setattr(self._state, "sequence", after))
        return sequence

    def streams(self) -> dict[str, Retention]:
        """All streams with their retention."""
        with self._lock:
            return {name: stream.retention for name, stream in self._state.streams.items()}

    def meters(self) -> LogMeters:
        """What is there, and what happened to the input."""
        with self._lock:
            streams = {
                name: StreamMeter(
                    stream.index.oldest,
                    stream.index.end,
                    stream.index.bytes(stream.index.oldest, stream.index.end),
                    stream.waiting_bytes(),
                    stream.dead,
                    stream.late,
                    stream.heartbeats,
                    self.held_back(name),
                )
                for name, stream in self._state.streams.items()
            }
            return LogMeters(streams, len(self._state.files), sum(row.live for row in self._state.rows.values()))

    def collect(self) -> Collected:
        """Deletes what no reader needs and history does not keep, and orphans; call it every few seconds."""
        with self._collecting:
            now = self.now()
            done = collect(self._store, self._state, self._storage, self.limits, now)
            done.rewritten = compact(self._store, self._state, self._storage, self.limits, now)
            return done

    @contextmanager
    def _intake(self, stream: str) -> Iterator[Asides]:
        """Appends to one stream happen one after the other."""
        with self._lock:
            self._state.stream(stream)  # says what is wrong
            intake = self._intakes[stream]
        with intake.lock:
            yield intake


@dataclass(frozen=True, slots=True)
class _Arrived:
    """What an append changes besides the segments."""

    position: Mapping[str, Any] | None
    newest: int | None
    dead: int
    late: int
    dead_bytes: int
    late_bytes: int

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


def _marked(stream: StreamState, at: int, time: int) -> None:
    stream.marks.add(at, time)


def _set_clock(stream: StreamState, clock: str) -> None:
    stream.clock, stream.newest = clock, None
    stream.marks.clear()


def _monotone(table: pa.Table, last: int) -> pa.Table:
    """Arrivals never go back within a stream, whatever the clocks of its sources did."""
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
