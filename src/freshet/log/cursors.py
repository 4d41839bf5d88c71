"""Registered readers: cursors that retention waits for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from freshet.log.errors import CursorMoved
from freshet.log.kinds import ReaderKind
from freshet.log.readable import Readable
from freshet.log.store import ledger
from freshet.log.store.state import ReaderState, StreamState
from freshet.log.store.store import NEEDED, PARKED, Store, Transaction
from freshet.model import FreshetError, Missing


@dataclass(frozen=True, slots=True)
class Advance:
    """A move of a sink's cursor.

    Args:
        reader: Name of the reader.
        stream: What it reads.
        end: Where it moves to.
        state: What the sink keeps with it.
    """

    reader: str
    stream: str
    end: int
    state: Mapping[str, Any] = field(default_factory=dict)


class Cursors(Readable):
    """The part of a log that knows how far each query and each sink has come."""

    _store: Store
    now: Callable[[], float]

    def start_reader(
        self,
        reader: str,
        stream: str,
        at: Literal["earliest", "latest"] | int = "earliest",
        *,
        kind: ReaderKind = "operator",
        owner: str = "",
    ) -> int:
        """Registers a reader and returns its cursor; a reader that is already registered continues from its cursor.

        A parked reader is at work again. If retention has dropped tuples meanwhile, it continues from the oldest tuple
        that is left, and what it missed is written to the ledger.

        Args:
            reader: Its name.
            stream: What it reads.
            at: Where a new reader begins.
            kind: What a new reader is for.
            owner: The query that a new reader belongs to, if it belongs to one alone.
        """

        def work(tx: Transaction) -> int:
            known = self._state.readers.get(reader)
            if known is not None:
                if known.stream != stream:
                    raise FreshetError(f"reader {reader} reads {known.stream}, not {stream}; drop it first")
                return self._unpark(tx, known) if known.parked else known.next
            found = self._state.stream(stream)
            cursor = _place(found, at)
            tx.execute(
                "INSERT INTO readers (name, stream, next, kind, owner) VALUES (?, ?, ?, ?, ?)",
                (reader, found.id, cursor, kind, owner),
            )
            tx.after(lambda: self._state.add_reader(ReaderState(reader, stream, cursor, kind=kind, owner=owner)))
            return cursor

        return self._store.write(work, alone=True)

    def set_cursor(self, reader: str, at: Literal["earliest", "latest"] | int) -> int:
        """Moves a reader's cursor, for a person who asks for it; returns the new one."""

        def work(tx: Transaction) -> int:
            known = self._state.reader(reader)
            cursor = _place(self._state.stream(known.stream), at)
            tx.execute("UPDATE readers SET next = ? WHERE name = ?", (cursor, reader))
            tx.after(lambda: self._moved({reader: cursor}))
            return cursor

        return self._store.write(work, alone=True)

    def park(self, readers: Iterable[str]) -> None:
        """Parks readers, all in one transaction: each keeps its cursor and its state and holds no data, until
        :meth:`start_reader` brings it back."""
        names = list(readers)

        def work(tx: Transaction) -> None:
            known = [self._state.reader(name) for name in names]
            tx.executemany("UPDATE readers SET needed = ? WHERE name = ?", [(PARKED, name) for name in names])
            for reader in known:
                tx.after(partial(_set_need, reader, False, parked=True))

        self._store.write(work, alone=True)

    def _unpark(self, tx: Transaction, reader: ReaderState) -> int:
        first, cursor = reader.next, max(reader.next, self._state.stream(reader.stream).index.oldest)
        if cursor > first:
            why, now = "parked, and retention let it go", round(self.now() * 1e6)
            ledger.enter(tx, ledger.lost(reader.owner, reader.name, reader.stream, first, cursor, why), now)
        tx.execute("UPDATE readers SET next = ?, needed = ? WHERE name = ?", (cursor, NEEDED, reader.name))
        tx.after(lambda: self._moved({reader.name: cursor}))
        tx.after(lambda: _set_need(reader, True, parked=False))
        return cursor

    def cursor(self, reader: str) -> int | None:
        """The next offset of a reader; None if there is no such reader."""
        with self._lock:
            known = self._state.readers.get(reader)
            return None if known is None else known.next

    def advance(self, reader: str, stream: str, end: int, state: Mapping[str, Any] | None = None) -> None:
        """Moves a sink's cursor and keeps the sink's own state with it, in one transaction."""
        for error in self.advance_all([Advance(reader, stream, end, state or {})]).values():
            raise error

    def advance_all(self, advances: Iterable[Advance]) -> dict[str, FreshetError]:
        """Moves the cursors of sinks and keeps each sink's own state with its cursor, all in one transaction.

        Returns:
            Why a cursor could not move, by reader. The others have moved.
        """
        wanted = list(advances)

        def work(tx: Transaction) -> dict[str, FreshetError]:
            refused: dict[str, FreshetError] = {}
            for each in wanted:
                try:
                    self._advance(tx, each)
                except FreshetError as error:
                    refused[each.reader] = error
            return refused

        return self._store.write(work) if wanted else {}

    def _advance(self, tx: Transaction, wanted: Advance) -> None:
        reader, end, kept = wanted.reader, wanted.end, dict(wanted.state)
        known = self._state.reader(reader)
        # Raises before anything is written.
        self._move(tx, reader, wanted.stream, tx.draft.get(("cursor", reader), known.next), end)
        tx.execute("UPDATE readers SET next = ?, state = ? WHERE name = ?", (end, json.dumps(kept), reader))
        tx.after(lambda: self._moved({reader: end}))
        tx.after(lambda: setattr(known, "state", kept))

    def reader_state(self, reader: str) -> dict[str, Any]:
        """What a sink last gave to :meth:`advance`."""
        with self._lock:
            return dict(self._state.reader(reader).state)

    def set_need(self, reader: str, needed: bool) -> None:
        """Says whether a reader is at work. A quarantined reader is not: it holds data only up to the bound, and what
        it loses beyond that is written to the ledger."""

        def work(tx: Transaction) -> None:
            known = self._state.reader(reader)
            if known.parked:
                raise FreshetError(f"reader {reader} is parked; start it first")
            tx.execute("UPDATE readers SET needed = ? WHERE name = ?", (needed, reader))
            tx.after(lambda: _set_need(known, needed, parked=False))

        self._store.write(work, alone=True)

    def ledger(self) -> list[Missing]:
        """Everything that answers lack, oldest first: what units left out, what quarantined readers lost beyond the
        bound, what parked readers lost to retention."""
        return ledger.entries(self._store.rows)

    def readers(self) -> dict[str, ReaderState]:
        """All registered readers, in their present state."""
        with self._lock:
            return {name: replace(reader, state=dict(reader.state)) for name, reader in self._state.readers.items()}

    def _move(self, tx: Transaction, reader: str, stream: str, first: int, end: int) -> None:
        known = self._state.reader(reader)
        if known.parked:
            raise CursorMoved(f"{reader} is parked, so it cannot move")
        cursor = tx.draft.get(("cursor", reader), known.next)
        if (known.stream, cursor) != (stream, first):
            raise CursorMoved(
                f"{reader} is at {known.stream} {cursor}, so it cannot move from {stream} {first} to {end}"
            )
        found = self._state.stream(stream)
        if not first <= end <= tx.draft.get(("next", found.id), found.index.end):
            raise CursorMoved(f"{reader} cannot move to {end}: {stream} ends at {found.index.end}")
        tx.draft["cursor", reader] = end

    def _moved(self, cursors: Mapping[str, int]) -> None:
        for name, cursor in cursors.items():
            if name in self._state.readers:
                self._state.readers[name].next = cursor


def _set_need(reader: ReaderState, needed: bool, *, parked: bool) -> None:
    reader.needed, reader.parked = needed, parked


def _place(stream: StreamState, at: Literal["earliest", "latest"] | int) -> int:
    oldest, end = stream.index.oldest, stream.index.end
    cursor = at if isinstance(at, int) else oldest if at == "earliest" else end
    if not oldest <= cursor <= end:
        raise FreshetError(f"{stream.name} holds offsets {oldest} to {end}, so no reader can be at {cursor}")
    return cursor
