"""Registered readers: cursors that retention waits for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from freshet.log.errors import CursorMoved
from freshet.log.readable import Readable
from freshet.log.records import Loss
from freshet.log.state import ReaderState, StreamState
from freshet.log.store import Store, Transaction
from freshet.model import FreshetError


class Cursors(Readable):
    """The part of a log that knows how far each query and each sink has come."""

    _store: Store

    def start_reader(self, reader: str, stream: str, at: Literal["earliest", "latest"] | int = "earliest") -> int:
        """Registers a reader; one that is registered already goes on from its cursor, which is returned."""

        def work(tx: Transaction) -> int:
            known = self._state.readers.get(reader)
            if known is not None:
                if known.stream != stream:
                    raise FreshetError(f"reader {reader} reads {known.stream}, not {stream}; drop it first")
                return known.next
            found = self._state.stream(stream)
            cursor = _place(found, at)
            tx.execute("INSERT INTO readers (name, stream, next) VALUES (?, ?, ?)", (reader, found.id, cursor))
            tx.after(lambda: self._state.add_reader(ReaderState(reader, stream, cursor)))
            return cursor

        return self._store.write(work, alone=True)

    def set_cursor(self, reader: str, at: Literal["earliest", "latest"] | int) -> int:
        """Puts a reader's cursor elsewhere, for a person who asks for it; returns the new one."""

        def work(tx: Transaction) -> int:
            known = self._state.reader(reader)
            cursor = _place(self._state.stream(known.stream), at)
            tx.execute("UPDATE readers SET next = ? WHERE name = ?", (cursor, reader))
            tx.after(lambda: self._moved({reader: cursor}))
            return cursor

        return self._store.write(work, alone=True)

    def drop_reader(self, reader: str) -> None:
        """Forgets a reader; nothing is kept for it any more."""

        def work(tx: Transaction) -> None:
            self._state.reader(reader)
            tx.execute("DELETE FROM readers WHERE name = ?", (reader,))
            tx.after(lambda: self._state.drop_reader(reader))

        self._store.write(work, alone=True)

    def cursor(self, reader: str) -> int | None:
        """The next offset of a reader; None where there is no such reader."""
        with self._lock:
            known = self._state.readers.get(reader)
            return None if known is None else known.next

    def advance(self, reader: str, stream: str, end: int, state: Mapping[str, Any] | None = None) -> None:
        """Moves a sink's cursor and keeps the sink's own state with it, in one transaction."""
        kept = dict(state or {})

        def work(tx: Transaction) -> None:
            known = self._state.reader(reader)
            self._move(tx, reader, stream, tx.draft.get(("cursor", reader), known.next), end)
            tx.execute("UPDATE readers SET next = ?, state = ? WHERE name = ?", (end, json.dumps(kept), reader))
            tx.after(lambda: self._moved({reader: end}))
            tx.after(lambda: setattr(known, "state", kept))

        self._store.write(work)

    def reader_state(self, reader: str) -> dict[str, Any]:
        """What a sink last gave to :meth:`advance`."""
        with self._lock:
            return dict(self._state.reader(reader).state)

    def set_need(self, reader: str, needed: bool) -> None:
        """Says whether a reader is at work. One that is not (quarantined) holds data up to the bound only;
        what it loses beyond that is written to the ledger."""

        def work(tx: Transaction) -> None:
            known = self._state.reader(reader)
            tx.execute("UPDATE readers SET needed = ? WHERE name = ?", (needed, reader))
            tx.after(lambda: setattr(known, "needed", needed))

        self._store.write(work, alone=True)

    def ledger(self) -> list[Loss]:
        """All that quarantined readers have lost."""
        rows = self._store.rows("SELECT reader, stream, first, end, why, time FROM ledger ORDER BY rowid")
        return [Loss(*row) for row in rows]

    def readers(self) -> dict[str, ReaderState]:
        """All registered readers, as they are now."""
        with self._lock:
            return {
                name: ReaderState(name, reader.stream, reader.next, reader.needed, dict(reader.state))
                for name, reader in self._state.readers.items()
            }

    def _move(self, tx: Transaction, reader: str, stream: str, first: int, end: int) -> None:
        known = self._state.reader(reader)
        cursor = tx.draft.get(("cursor", reader), known.next)
        if (known.stream, cursor) != (stream, first):
            raise CursorMoved(
                f"{reader} stands at {known.stream} {cursor}, so it cannot move from {stream} {first} to {end}"
            )
        found = self._state.stream(stream)
        if not first <= end <= tx.draft.get(("next", found.id), found.index.end):
            raise CursorMoved(f"{reader} cannot move to {end}: {stream} ends at {found.index.end}")
        tx.draft["cursor", reader] = end

    def _moved(self, cursors: Mapping[str, int]) -> None:
        for name, cursor in cursors.items():
            if name in self._state.readers:
                self._state.readers[name].next = cursor


def _place(stream: StreamState, at: Literal["earliest", "latest"] | int) -> int:
    oldest, end = stream.index.oldest, stream.index.end
    cursor = at if isinstance(at, int) else oldest if at == "earliest" else end
    if not oldest <= cursor <= end:
        raise FreshetError(f"{stream.name} holds offsets {oldest} to {end}, so no reader can stand at {cursor}")
    return cursor
