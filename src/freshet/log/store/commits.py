"""What becomes true together: files join the log, cursors and watermarks move."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from freshet.log.cursors import Cursors
from freshet.log.errors import NotSynced
from freshet.log.segments.storage import PosixStorage
from freshet.log.store import instances, ledger
from freshet.log.store.state import StreamState
from freshet.log.store.store import Member, Transaction, pack_members
from freshet.log.store.tail import stamped
from freshet.model import Commit, FreshetError, Instance, SegmentFile

_SEQUENCE: Final = ("sequence", "")


class Commits(Cursors):
    """The part of a log that takes in what units have made."""

    epoch: int
    """Number of this run over the folder."""
    _numbers: itertools.count[int]
    _storage: PosixStorage

    def _name(self) -> str:
        return stamped(f"append-{self.epoch}-{next(self._numbers)}", self.commits)

    @property
    def commits(self) -> int:
        """Number of durable transactions of all runs; :func:`~freshet.log.store.tail.stamped` puts it into names."""
        return self._store.commits

    def commit(self, results: Sequence[Commit]) -> None:
        """Makes finished units durable, all of them in one transaction, in the order given.

        Bounds do not stop a commit: its work is done. Ask :meth:`held_back` about what it writes before starting it.

        Raises:
            CursorMoved: A range does not begin at its reader's cursor; nothing took effect.
            LogFull: The disk is full; nothing took effect, and the same commit may be tried again.
            NotSynced: Files could not be made durable; nothing took effect, and their units must run again.
        """
        files = [file for result in results for file in result.files]

        def work(tx: Transaction) -> None:
            # Files first: a unit of several jobs may drop state that one of its earlier jobs has written.
            self._take_files(tx, files)
            for reader, stream, first, end in (move for result in results for move in result.cursors):
                self._move(tx, reader, stream, first, end)
            for stream, mark in (entry for result in results for entry in result.watermarks):
                self._mark(tx, self._state.stream(stream), mark)
            now = round(self.now() * 1e6)
            for entry in (entry for result in results for entry in result.missing):
                (ledger.widen if entry.kind in ("past-mark", "let-go") else ledger.enter)(tx, entry, now)
            for each in (each for result in results for each in result.instances):
                self._enter(tx, each)
            moved = {str(name): cursor for (kind, name), cursor in tx.draft.items() if kind == "cursor"}
            tx.executemany("UPDATE readers SET next = ? WHERE name = ?", [(at, name) for name, at in moved.items()])
            tx.after(lambda: self._moved(moved))

        with self._about_to_commit(files):
            self._store.write(work)

    def _enter(self, tx: Transaction, instance: Instance) -> None:
        """Enters what became of an instance; its answer, if there is one, is what was appended last to its output."""
        output = self._state.stream(instance.query)
        end = tx.draft.get(("next", output.id), output.index.end)
        instances.write(tx, replace(instance, first=end - instance.rows))
        instances.forget_old(tx, instance, output.index.oldest)

    @contextmanager
    def _about_to_commit(self, files: Sequence[SegmentFile]) -> Iterator[None]:
        """Protects files from being taken for orphans, refuses those that are not what they should be, and makes those
        durable that are not yet, all at once."""
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
            self._sync([file.name for file in files if file.members and not file.synced])
            yield
        finally:
            with self._lock:
                self._state.pending -= names

    def _sync(self, names: Sequence[str]) -> None:
        if not names:
            return
        try:
            self._storage.sync(names)
        except OSError as error:
            # A second try might succeed although the system has dropped what it could not write.
            raise NotSynced(f"segment files could not be synced: {error}") from error

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

    def _mark(self, tx: Transaction, stream: StreamState, time: int) -> None:
        """Enters a watermark at the end of a stream, if it is new."""
        newest = tx.draft.get(("watermark", stream.id), stream.marks.newest)
        if newest is not None and time <= newest:
            return
        at = tx.draft.get(("next", stream.id), stream.index.end)
        if tx.draft.get(("marked", stream.id), stream.marks.offset) == at:
            # The newest of those at one offset says everything that the others said.
            tx.execute("DELETE FROM heartbeats WHERE stream = ? AND at = ?", (stream.id, at))
        tx.draft["watermark", stream.id], tx.draft["marked", stream.id] = time, at
        tx.execute("INSERT INTO heartbeats VALUES (?, ?, ?, ?)", (self._sequence(tx, 1), stream.id, at, time))
        tx.after(lambda: _marked(stream, at, time))


def _marked(stream: StreamState, at: int, time: int) -> None:
    stream.marks.add(at, time)
