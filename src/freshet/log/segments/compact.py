"""Rewrites files of which little is still needed.

A step writes one file for all its members. If one of 250 outputs waits for a slow sink, its few bytes would
keep the bytes of all the others on the disk. So what is left of such files is copied, byte by byte, into a new one.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from freshet.log.errors import Damaged, LogFull
from freshet.log.segments.pieces import Pieces
from freshet.log.segments.retention import Limits
from freshet.log.segments.segment import SUFFIX
from freshet.log.segments.storage import Storage
from freshet.log.segments.sums import checked
from freshet.log.store.state import LogState, RowState
from freshet.log.store.store import Store, Transaction, pack_members, unpack_members
from freshet.log.store.tail import stamped
from freshet.model import Segment

SPARSE: Final = 4
"""A file is sparse if the needed share of its bytes is at most one over this number."""
BATCH_BYTES: Final = 64 * 2**20

Moved = dict[int, list[list[int]]]
"""Members of each row, at their new positions."""


def compact(store: Store, state: LogState, storage: Storage, limits: Limits, now: float) -> list[str]:
    """Moves what is left of old sparse files into one new file; returns the files that this retires."""
    rows = _sparse_rows(store, state, round((now - limits.sparse_age) * 1e6))
    if not rows:
        return []
    name = stamped(f"compact-{uuid.uuid4().hex}", store.commits) + SUFFIX
    try:
        moved = _copy(store, state, storage, rows, name)
        if not moved:
            return []
        return store.write(lambda tx: _move(tx, state, moved, name, now + limits.orphan_age), alone=True)
    except (OSError, LogFull):
        # Without room for the copy the files stay as they are; that does no harm.
        storage.delete(name)
        return []


def _sparse_rows(store: Store, state: LogState, before_us: int) -> list[int]:
    rows: list[int] = []
    left = BATCH_BYTES
    with store.lock:
        for number, row in state.rows.items():
            if row.appended <= before_us and _is_sparse(row) and row.live_bytes <= left:
                rows.append(number)
                left -= row.live_bytes
    return rows


def _is_sparse(row: RowState) -> bool:
    return 0 < row.live_bytes * SPARSE <= row.bytes


def _copy(store: Store, state: LogState, storage: Storage, rows: Sequence[int], name: str) -> Moved:
    pieces = Pieces()
    moved: Moved = {}
    for number in rows:
        ((file, packed),) = store.rows("SELECT file, members FROM segments WHERE sequence = ?", (number,))
        members = unpack_members(packed)
        try:
            kept = _kept(state, storage, file, members)
        except (Damaged, FileNotFoundError):
            continue  # it stays where it is; its readers hear of the damage
        for member, content in kept:
            member[3] = pieces.add(content)
        moved[number] = members
    if moved:
        storage.put(name, pieces.buffers)
    return moved


def _kept(state: LogState, storage: Storage, file: str, members: list[list[int]]) -> list[tuple[list[int], pa.Buffer]]:
    """The needed members of a file, with their bytes, including the checksums."""
    kept = []
    with storage.open(file) as source:
        content = source.read_buffer()
    for member in members:
        id_, first, rows, position, length, arrival, last = member
        stream = state.keeper(id_, first)
        if stream is not None:
            checked(content, Segment(stream.name, first, rows, 0, arrival, last, file, position, length), storage)
            kept.append((member, content.slice(position, length)))
    return kept


def _move(tx: Transaction, state: LogState, moved: Moved, name: str, due: float) -> list[str]:
    retired: list[str] = []
    # Since the copy, retention may have removed a row, but never added a member to one.
    moved = {number: members for number, members in moved.items() if number in state.rows}
    tx.executemany(
        "UPDATE segments SET file = ?, bytes = ?, members = ? WHERE sequence = ?",
        [(name, state.rows[number].live_bytes, pack_members(members), number) for number, members in moved.items()],
    )
    tx.execute("UPDATE meta SET value = value + 1 WHERE key = 'moves'")

    def effect() -> None:
        for number, members in moved.items():
            old = state.move_row(number, name, members)
            if old is not None:
                state.retired[old] = due
                retired.append(old)

    tx.after(effect)
    return retired
