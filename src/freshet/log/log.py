"""The log of an application: streams, cursors, commits."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from freshet.log.intake.asides import Asides
from freshet.log.kinds import StreamKind
from freshet.log.rearranging import Rearrangement, Rearranging
from freshet.log.releases import Releasing
from freshet.log.segments.collect import Collected, collect
from freshet.log.segments.compact import compact
from freshet.log.segments.index import StreamIndex
from freshet.log.segments.retention import Limits, Retention
from freshet.log.segments.storage import PosixStorage
from freshet.log.store.examine import examine, told
from freshet.log.store.lock import OwnerLock
from freshet.log.store.private import make_folder
from freshet.log.store.records import LogMeters, StreamMeter
from freshet.log.store.state import LogState, StreamState
from freshet.log.store.store import Store, Transaction
from freshet.model import UserError
from freshet.model.places import check_local


class Log(Rearranging, Releasing):
    """The owner's side of a state folder; every method may be called from any thread.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> from freshet.model import ARRIVAL, Commit
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
        self.epoch = self._store.epoch
        lock.sign(self.epoch)
        self._lock = self._store.lock
        self._state = LogState()
        with told(state / "store.db"):
            self._state.catch_up(self._store.rows)
        for name, clock in self._store.rows("SELECT name, clock FROM streams"):
            self._state.streams[name].clock = clock
        self._budgets = {}
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
        """Closes the log and releases the lock."""
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

    def declare(
        self,
        stream: str,
        retention: Retention | None = None,
        clock: str | None = None,
        kind: StreamKind | None = None,
        ordered: str | None = None,
    ) -> None:
        """Adds a stream, or changes the retention of an existing one.

        Args:
            stream: Its name.
            retention: What it keeps.
            kind: What it holds. None leaves it unchanged; a new stream is then a ``stream``.
            clock: What its watermarks are about: the column of its event time, or the arrival. If that changes, the
                existing watermarks mean nothing any more and are forgotten. None leaves it unchanged.
            ordered: What its key marks are about: the column that its tuples are ordered by. If that changes, the
                existing ones are forgotten. None: it has no such column.
        """
        rules = retention or Retention()

        def work(tx: Transaction) -> None:
            known = self._state.streams.get(stream)
            holds = kind or (known.kind if known is not None else "stream")
            (id_,) = tx.execute(
                "INSERT INTO streams (name, retention, kind) VALUES (?, ?, ?)"
                " ON CONFLICT (name) DO UPDATE SET retention = excluded.retention, kind = excluded.kind RETURNING id",
                (stream, json.dumps(asdict(rules)), holds),
            ).fetchone()
            tx.after(lambda: self._declared(stream, id_, rules, holds))
            if clock is not None and (known is None or known.clock != clock):
                tx.execute("UPDATE streams SET clock = ?, newest = NULL WHERE id = ?", (clock, id_))
                tx.execute("DELETE FROM heartbeats WHERE stream = ?", (id_,))
                tx.after(lambda: _set_clock(self._state.streams[stream], clock))
            if clock is not None and (None if known is None else known.ordered) != ordered:
                tx.execute("UPDATE streams SET ordered = ?, disorder = NULL, past = 0 WHERE id = ?", (ordered, id_))
                tx.execute("DELETE FROM key_marks WHERE stream = ?", (id_,))
                tx.after(lambda: _set_ordered(self._state.streams[stream], ordered))

        self._store.write(work, alone=True)

    def _declared(self, name: str, id_: int, retention: Retention, kind: StreamKind) -> None:
        known = self._state.streams.get(name)
        if known is not None:
            known.retention, known.kind = retention, kind
            return
        stream = StreamState(id_, name, retention, StreamIndex(name), kind=kind)
        self._state.add_stream(stream)
        self._intakes[name] = Asides(self._asides, stream)

    def forget(self, stream: str) -> None:
        """Drops a stream with its readers, its dead letters and late rows; :meth:`collect` deletes its files."""
        with self._intake(stream):
            self.rearrange(Rearrangement(forget=(stream,)))

    def streams(self) -> dict[str, Retention]:
        """All streams with their retention."""
        with self._lock:
            return {name: stream.retention for name, stream in self._state.streams.items()}

    def meters(self) -> LogMeters:
        """What the log holds, and what happened to the input."""
        with self._lock:
            streams = {
                name: StreamMeter(
                    stream.index.oldest,
                    stream.index.end,
                    stream.index.bytes(stream.index.oldest, stream.index.end),
                    stream.waiting_bytes(),
                    stream.dead,
                    stream.late,
                    stream.past,
                    stream.heartbeats,
                    self.held_back(name),
                )
                for name, stream in self._state.streams.items()
            }
            return LogMeters(streams, len(self._state.files), sum(row.live for row in self._state.rows.values()))

    def collect(self) -> Collected:
        """Deletes orphans and everything that neither a reader needs nor history keeps; call it every few seconds."""
        with self._collecting:
            now = self.now()
            done = collect(self._store, self._state, self._storage, self.limits, now)
            done.rewritten = compact(self._store, self._state, self._storage, self.limits, now)
            return done


def _set_clock(stream: StreamState, clock: str) -> None:
    stream.clock, stream.newest = clock, None
    stream.marks.clear()


def _set_ordered(stream: StreamState, ordered: str | None) -> None:
    stream.ordered, stream.disorder, stream.order, stream.past = ordered, None, None, 0
    stream.let_go.clear()
    stream.key_marks.clear()
    stream.past_rows.clear()
