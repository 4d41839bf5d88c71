"""Checks whether a state folder is intact. It looks at every file and changes nothing; an owner may be at work."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from freshet.log.errors import Damaged
from freshet.log.segments.segment import check_segment
from freshet.log.segments.storage import PosixStorage
from freshet.log.segments.sums import has_sum, missing
from freshet.log.store.examine import STORE, NoLog, connect, problems, told
from freshet.log.store.state import LogState
from freshet.log.store.tail import Witness
from freshet.model import Segment, UserError

MEANINGS: Final = {
    "store": "a store that is damaged, or has lost commits, is not opened: put store.db and store.db-wal back as they "
    "were, or begin with a new state folder; nothing is deleted meanwhile",
    "segments": "readers of a damaged range hear of it: a query is quarantined, a sink waits; the others continue",
    "cursors": "a reader outside of its stream cannot continue: its query fails when it starts",
    "orphans": "normal after a kill: output of units that were not committed; a run deletes it after ten minutes",
    "set aside": "lines of dead letters or late rows are gone; no answer depends on them",
}


@dataclass(slots=True)
class Check:
    """One kind of thing that was checked."""

    name: str
    looked_at: str
    damage: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def meaning(self) -> str:
        """What its findings mean."""
        return MEANINGS[self.name]


def verify(state: Path) -> list[Check]:
    """Checks the store, the sums of all segments, the cursors, and files that the store does not know.

    Raises:
        UserError: There is no log in the folder, or one of another version.

    >>> import tempfile
    >>> from freshet.log import Log
    >>> with tempfile.TemporaryDirectory() as folder, Log.open(Path(folder)) as log:
    ...     log.declare("s")
    ...     [(check.name, check.damage) for check in verify(Path(folder))]
    [('store', []), ('segments', []), ('cursors', []), ('orphans', []), ('set aside', [])]
    """
    path, witness = state / STORE, Witness.of(state)
    store = Check("store", STORE)
    if not path.exists() or not path.stat().st_size:
        if not witness.files and not witness.tail:
            raise UserError(f"{state} holds no log: there is no {STORE} in it")
        store.damage.append(f"{path} is missing or empty beside {len(witness.files)} segment files")
        return [store]
    try:
        return _verify(state, path, witness, store)
    except Damaged as error:
        store.damage.append(str(error))
        return [store]


def _verify(state: Path, path: Path, witness: Witness, store: Check) -> list[Check]:
    with closing(connect(path)) as connection, told(path):
        connection.execute("BEGIN")
        try:
            store.damage += problems(connection, path, witness)
        except NoLog as error:
            if store.damage:
                return [store]
            raise UserError(str(error)) from None
        known = _load(connection)
        commits = connection.execute("SELECT max(value) FROM meta WHERE key = 'commits'").fetchone()[0]
        connection.execute("COMMIT")
        if commits is None:
            store.notes.append("written by a version that kept no digest; the next run adds one")
        store.looked_at = f"{STORE}, {commits or 0:,} commits"
        segments = _segments(state, known, lambda: _load(connection))
    return [store, segments, _cursors(known), _orphans(state, known, witness, commits or 0), _aside(state, known)]


def _segments(state: Path, known: LogState, load: Callable[[], LogState]) -> Check:
    storage = PosixStorage(state / "segments")
    check = Check("segments", "")
    every = [segment for stream in known.streams.values() for segment in stream.index.segments]
    unsummed = sum(not has_sum(segment) for segment in every)
    for name, first, end in _gaps(known):
        check.damage.append(f"stream {name}: offsets {first} to {end - 1} are in no segment")
    for segment in every:
        try:
            check_segment(storage, segment)
        except Damaged as error:
            check.damage.append(str(error))
        except FileNotFoundError:
            # The owner may have moved or removed it since.
            if _is_kept(load(), segment):
                check.damage.append(str(missing(segment)))
        except OSError as error:
            check.damage.append(f"segment file {segment.file} cannot be read: {error}")
    size = sum(segment.length for segment in every)
    check.looked_at = f"{len(every):,} in {len(known.files):,} files, {size:,} bytes"
    if unsummed:
        check.notes.append(f"{unsummed:,} are from a version that wrote no checksums: only their sizes are known")
    return check


def _gaps(known: LogState) -> Iterator[tuple[str, int, int]]:
    for stream in known.streams.values():
        segments = stream.index.segments
        for before, after in pairwise(segments):
            if before.end != after.first:
                yield stream.name, before.end, after.first


def _is_kept(known: LogState, segment: Segment) -> bool:
    stream = known.streams.get(segment.stream)
    return stream is not None and any(
        (each.file, each.first) == (segment.file, segment.first) for each in stream.index.segments
    )


def _load(connection: sqlite3.Connection) -> LogState:
    known = LogState()
    known.catch_up(lambda query: connection.execute(query).fetchall())
    return known


def _cursors(known: LogState) -> Check:
    check = Check("cursors", f"{len(known.readers):,} readers of {len(known.streams):,} streams")
    for reader in known.readers.values():
        index = known.streams[reader.stream].index
        # A parked reader may be where retention has dropped tuples since.
        lowest = 0 if reader.parked else index.oldest
        if not lowest <= reader.next <= index.end:
            check.damage.append(
                f"reader {reader.name} is at {reader.next}, but {reader.stream} holds offsets {index.oldest} to "
                f"{index.end}"
            )
    return check


def _orphans(state: Path, known: LogState, witness: Witness, commits: int) -> Check:
    storage = PosixStorage(state / "segments")
    found = [(name, size) for name in witness.files if name not in known.files and (size := storage.size(name))]
    check = Check("orphans", f"{len(witness.files):,} files")
    if found:
        size = sum(size for _, size in found)
        check.notes.append(
            f"{len(found):,} files, {size:,} bytes, are not in the store: {_some([n for n, _ in found])}"
        )
    return check


def _aside(state: Path, known: LogState) -> Check:
    check = Check("set aside", f"dead and late rows of {len(known.streams):,} streams")
    for stream in known.streams.values():
        for kind, length in (("dead", stream.dead_bytes), ("late", stream.late_bytes)):
            path = state / kind / f"{quote(stream.name, safe='')}.jsonl"
            size = path.stat().st_size if path.exists() else 0
            if size < length:
                check.damage.append(f"{path} has {size:,} bytes, but {length:,} were written")
    return check


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def document(state: Path, checks: list[Check]) -> dict[str, Any]:
    """All results, for programs."""
    return {
        "state": str(state),
        "whole": not any(check.damage for check in checks),
        "checks": [
            {"check": each.name, "looked_at": each.looked_at, "damage": each.damage, "notes": each.notes}
            for each in checks
        ],
    }
