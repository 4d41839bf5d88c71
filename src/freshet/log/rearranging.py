"""Changing who reads what: readers and queues come and go together, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from freshet.log.intake.appends import Appends
from freshet.log.segments.segment import SegmentWriter, read_segment
from freshet.log.store import instances, ledger
from freshet.log.store.state import QueryRecord, ReaderState, StreamState
from freshet.log.store.store import NEEDED, PARKED, Transaction
from freshet.model import SegmentFile, Train

_FILE_BYTES: Final = 64 * 2**20
"""A file of copied tuples is finished when it has this many bytes."""


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """Changes that take effect together.

    Args:
        forget: Streams to drop, with their readers.
        drop: Other readers to drop.
        start: Readers to add; one may have the name of a reader that is dropped.
        watermarks: (stream, microseconds): no tuple of the files, nor any later one, is older.
        files: Files that :meth:`Rearranging.copied` has written.
        queries: What is known of queries from now on; None for a query means nothing.
    """

    forget: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    start: tuple[ReaderState, ...] = ()
    watermarks: tuple[tuple[str, int], ...] = ()
    files: tuple[SegmentFile, ...] = ()
    queries: Mapping[str, QueryRecord | None] = field(default_factory=dict)


class Rearranging(Appends):
    """The part of a log that knows queries, and changes their readers and queues together."""

    def queries(self) -> dict[str, QueryRecord]:
        """What is known of queries from one run to the next."""
        with self._lock:
            return dict(self._state.queries)

    def remember(self, query: str, record: QueryRecord) -> None:
        """Keeps a record of a query."""
        self.rearrange(Rearrangement(queries={query: record}))

    def drop_reader(self, reader: str) -> None:
        """Forgets a reader; the log keeps nothing for it any more."""
        self.rearrange(Rearrangement(drop=(reader,)))

    def copied(self, trains: Iterable[Train], stream: str) -> tuple[SegmentFile, ...]:
        """Writes the tuples of trains, one after the other, as tuples of another stream. They enter the log when
        :meth:`rearrange` gets the files."""
        files: list[SegmentFile] = []
        writer, size = SegmentWriter(self._storage, self._name()), 0
        for train in trains:
            for segment in train.segments:
                first, end = max(segment.first, train.first), min(segment.end, train.end)
                writer.add(stream, read_segment(self._storage, segment, first, end))
                size += segment.length
                if size >= _FILE_BYTES:
                    files.append(writer.finish())
                    writer, size = SegmentWriter(self._storage, self._name()), 0
        return (*files, writer.finish())

    def rearrange(self, change: Rearrangement) -> None:
        """Makes a change durable, all of it or none."""
        gone = [self._intakes[name] for name in change.forget]

        def work(tx: Transaction) -> None:
            for name in change.forget:
                self._forget(tx, self._state.stream(name))
            for name in change.drop:
                self._drop(tx, name)
            for stream, time in change.watermarks:
                self._mark(tx, self._state.stream(stream), time)
            self._take_files(tx, change.files)
            for reader in change.start:
                self._start(tx, reader)
            for query, record in change.queries.items():
                self._keep(tx, query, record)

        with self._about_to_commit(change.files):
            self._store.write(work, alone=True)
        for intake in gone:
            intake.delete()

    def _forget(self, tx: Transaction, stream: StreamState) -> None:
        tx.execute("DELETE FROM streams WHERE id = ?", (stream.id,))
        tx.execute("DELETE FROM readers WHERE stream = ?", (stream.id,))
        tx.execute("DELETE FROM heartbeats WHERE stream = ?", (stream.id,))
        tx.execute("DELETE FROM key_marks WHERE stream = ?", (stream.id,))
        tx.execute("DELETE FROM records WHERE stream = ?", (stream.id,))
        tx.after(lambda: self._forgotten(stream))

    def _forgotten(self, stream: StreamState) -> None:
        self._state.drop_stream(stream)
        del self._intakes[stream.name]

    def _drop(self, tx: Transaction, reader: str) -> None:
        self._state.reader(reader)
        tx.execute("DELETE FROM readers WHERE name = ?", (reader,))
        tx.after(lambda: self._state.drop_reader(reader))

    def _start(self, tx: Transaction, reader: ReaderState) -> None:
        need = PARKED if reader.parked else NEEDED if reader.needed else 0
        tx.execute(
            "INSERT INTO readers (name, stream, next, needed, state, kind, owner) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (reader.name, self._state.stream(reader.stream).id, reader.next, need, json.dumps(reader.state),
             reader.kind, reader.owner),
        )  # fmt: skip
        tx.after(partial(self._state.add_reader, reader))

    def _keep(self, tx: Transaction, query: str, record: QueryRecord | None) -> None:
        tx.execute("DELETE FROM queries WHERE name = ?", (query,))
        if record is None:
            ledger.forget(tx, query)
            instances.forget(tx, query)
            tx.after(lambda: self._state.forget_query(query))
            return
        tx.execute("INSERT INTO queries VALUES (?, ?, ?)", (query, record.fingerprint, json.dumps(dict(record.state))))
        tx.after(partial(self._state.queries.__setitem__, query, record))
