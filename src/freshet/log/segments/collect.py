"""Deleting what nobody needs any more: first from the store, then from the disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from freshet.log.errors import LogFull
from freshet.log.segments.retention import Limits, keep_from
from freshet.log.segments.storage import Storage
from freshet.log.store import ledger
from freshet.log.store.state import LogState, ReaderState, StreamState
from freshet.log.store.store import Store, Transaction

_EVERYTHING: Final = 2**63 - 1
"""An offset behind all tuples."""


@dataclass(slots=True)
class Collected:
    """What one collection removed."""

    segments: int = 0
    files: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    """Sparse files whose needed members were moved to a new file."""
    lost: int = 0
    """Tuples that quarantined readers will never see; the ledger has the ranges."""


def collect(store: Store, state: LogState, storage: Storage, limits: Limits, now: float) -> Collected:
    """Applies every stream's retention and deletes orphans."""
    done = Collected()
    pressure = storage.free_bytes() < limits.min_free_bytes
    now_us = round(now * 1e6)
    try:
        store.write(lambda tx: _forget(tx, state, now_us, pressure, done), alone=True)
    except LogFull:
        # The store has made room for itself meanwhile, and this is what frees the disk.
        done = Collected()
        store.write(lambda tx: _forget(tx, state, now_us, pressure, done), alone=True)
    # A crash in between leaves files that the store does not know; the next collection deletes them as orphans.
    for name in done.files:
        storage.delete(name)
    for name in _old_files(storage, now - limits.orphan_age):
        with store.lock:
            if name not in state.files and name not in state.pending and name not in state.retired:
                storage.delete(name)
                done.orphans.append(name)
    for name in [name for name, due in state.retired.items() if due <= now]:
        storage.delete(name)
        del state.retired[name]
    return done


def _forget(tx: Transaction, state: LogState, now_us: int, pressure: bool, done: Collected) -> None:
    floors = {}
    for stream in state.streams.values():
        floor = _floor(stream, now_us, pressure)
        if floor > stream.index.oldest:
            floors[stream.name] = floor
            _raise(tx, stream, floor, now_us, pressure, done)
    if floors:
        _trim_ledger(tx, state, floors, now_us)
    spent = state.spent(floors)
    tx.executemany("DELETE FROM segments WHERE sequence = ?", [(row,) for row in spent])
    # The newest watermark at or below the oldest offset still holds for that offset.
    raised = [(state.streams[name], floor) for name, floor in floors.items()]
    kept = [(stream.id, at) for stream, floor in raised if (at := stream.marks.last_before(floor)) is not None]
    tx.executemany("DELETE FROM heartbeats WHERE stream = ? AND at < ?", kept)
    of_joins = [(stream, floor, join, known.marks) for stream, floor in raised for join, known in stream.let_go.items()]
    whose = [(stream, floor, "", stream.key_marks) for stream, floor in raised] + of_joins
    old = [(each.id, join, at) for each, floor, join, marks in whose if (at := marks.last_before(floor)) is not None]
    # An entry without key and tuples says that a join is reckoned, which does not grow old.
    is_old = "stream = ? AND joined = ? AND at < ? AND (key IS NOT NULL OR length(past) > 0)"
    tx.executemany(f"DELETE FROM key_marks WHERE {is_old}", old)
    tx.after(lambda: _forgotten(state, floors, spent, done))


def _trim_ledger(tx: Transaction, state: LogState, floors: Mapping[str, int], now_us: int) -> None:
    """The ledger is kept as long as the tuples that it is about, and the answers that lack them."""
    for query, name in tx.execute("SELECT DISTINCT query, stream FROM ledger").fetchall():
        stream, output = state.streams.get(name), state.streams.get(query)
        oldest = _EVERYTHING if stream is None else floors.get(name, stream.index.oldest)
        since = None if output is None else output.index.appended_at(floors.get(query, output.index.oldest))
        ledger.trim(tx, query, name, oldest, now_us if since is None else since)


def _floor(stream: StreamState, now_us: int, pressure: bool) -> int:
    needed = [reader.next for reader in stream.readers.values() if reader.needed]
    quarantined = [reader.next for reader in stream.readers.values() if reader.quarantined]
    floor = keep_from(stream.index, stream.retention, needed, quarantined, now_us, pressure)
    return stream.index.whole(floor)


def _raise(tx: Transaction, stream: StreamState, floor: int, now_us: int, pressure: bool, done: Collected) -> None:
    tx.execute("UPDATE streams SET oldest = ? WHERE id = ?", (floor, stream.id))
    why = "the disk was nearly full" if pressure else "it fell behind the bound"
    for reader in _overtaken(stream, floor):
        told = ledger.lost(reader.owner, reader.name, stream.name, reader.next, floor, f"quarantined, and {why}")
        ledger.enter(tx, told, now_us)
        tx.execute("UPDATE readers SET next = ? WHERE name = ?", (floor, reader.name))
        done.lost += floor - reader.next


def _overtaken(stream: StreamState, floor: int) -> Iterator[ReaderState]:
    # A parked reader hears of it once, when it comes back, not at every collection while it is out.
    return (reader for reader in stream.readers.values() if reader.quarantined and reader.next < floor)


def _forgotten(state: LogState, floors: dict[str, int], spent: list[int], done: Collected) -> None:
    for name, floor in floors.items():
        stream = state.streams[name]
        for reader in _overtaken(stream, floor):
            reader.next = floor
        before = len(stream.index.segments)
        state.drop_segments(stream, floor)
        done.segments += before - len(stream.index.segments)
    done.files = state.drop_rows(spent)


def _old_files(storage: Storage, older_than: float) -> Iterator[str]:
    return (file.name for file in storage.list() if file.modified < older_than)
