"""The commit store: one SQLite database that says what exists. What is not in it does not exist."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import numpy as np

from freshet.log.errors import Deposed, LogFull, StoreFailed
from freshet.log.store.digest import KEY, Digest, digest_of, stored_digest
from freshet.log.store.private import make_private
from freshet.log.store.tail import Tail
from freshet.log.store.upgrade import upgrade
from freshet.model import UserError

FORMAT: Final = 10
"""Version of everything in the state folder."""
_READABLE: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, FORMAT)
"""Versions that can be read. In a folder of version 1 no reader is parked and no watermark is known; otherwise it is
one of version 2. A folder of version 2 has neither a digest nor a number of commits. Until version 3 the names of
streams and readers told what they are for, and readers knew the queries. Until version 4 a source kept no records.
Until version 5 every state lay in one part: who knows only that would not see the other parts. Until version 6 the
ledger knew only what readers had lost to retention. Until version 7 no periodic query ran. Until version 8 there were
no key marks: who does not know them would join tuples that are past one. Until version 9 no join let tuples go."""

NEEDED: Final = 1
"""A value of the column ``readers.needed``: at work. 0 means quarantined."""
PARKED: Final = 2
"""A value of the column ``readers.needed``: it keeps its place and holds nothing."""

T = TypeVar("T")
Member = tuple[int, int, int, int, int, int, int]
"""Stream id, first offset, rows, position, length, first arrival, last arrival."""

_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE streams (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, retention TEXT NOT NULL,
    oldest INTEGER NOT NULL DEFAULT 0, arrival INTEGER NOT NULL DEFAULT 0,
    position TEXT, newest INTEGER, dead INTEGER NOT NULL DEFAULT 0, dead_bytes INTEGER NOT NULL DEFAULT 0,
    late INTEGER NOT NULL DEFAULT 0, late_bytes INTEGER NOT NULL DEFAULT 0,
    heartbeats INTEGER NOT NULL DEFAULT 0, clock TEXT, kind TEXT NOT NULL DEFAULT 'stream');
CREATE TABLE segments (
    sequence INTEGER PRIMARY KEY, file TEXT NOT NULL, bytes INTEGER NOT NULL, appended INTEGER NOT NULL,
    members BLOB NOT NULL);
CREATE TABLE heartbeats (
    sequence INTEGER PRIMARY KEY, stream INTEGER NOT NULL, at INTEGER NOT NULL, time INTEGER NOT NULL);
CREATE INDEX heartbeats_by_stream ON heartbeats (stream, at);
CREATE TABLE readers (
    name TEXT PRIMARY KEY, stream INTEGER NOT NULL, next INTEGER NOT NULL, needed INTEGER NOT NULL DEFAULT 1,
    state TEXT NOT NULL DEFAULT '{}', kind TEXT NOT NULL DEFAULT 'operator', owner TEXT NOT NULL DEFAULT '')
    WITHOUT ROWID;
CREATE TABLE queries (
    name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, state TEXT NOT NULL DEFAULT '{}') WITHOUT ROWID;
CREATE TABLE records (
    stream INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (stream, key)) WITHOUT ROWID;
INSERT INTO meta VALUES ('epoch', 0), ('sequence', 0), ('moves', 0);
"""


class Transaction:
    """What one piece of work may do: write to the store, see what was written before it in the same
    transaction, and say what changes in memory once everything is durable."""

    def __init__(self, connection: sqlite3.Connection, draft: dict[tuple[str, int | str], int]) -> None:
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.draft = draft
        """Numbers (ends, cursors, the sequence) that differ from the committed ones."""
        self.effects: list[Callable[[], None]] = []

    def after(self, effect: Callable[[], None]) -> None:
        """Calls ``effect`` when the transaction is durable."""
        self.effects.append(effect)


class _Ticket(Generic[T]):
    def __init__(self, work: Callable[[Transaction], T], alone: bool) -> None:
        self.work = work
        self.alone = alone
        self.value: T | None = None
        self.error: BaseException | None = None
        self.settled = False


class Store:
    """SQLite with an epoch and group commit: one of the threads that wait to write writes for all.

    Work validates before it writes. If it raises, its own part is undone and the parts of the others are kept.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder, "store.db"))
    ...     store.epoch, store.rows("SELECT key FROM meta WHERE key = 'sequence'")
    ...     store.close()
    (1, [('sequence',)])
    """

    def __init__(self, path: Path) -> None:
        self.commits = 0
        """Number of durable transactions, in all runs over this folder."""
        self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        # Its log inherits the permissions, so they must be right before.
        make_private(path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        try:
            self.epoch = self._take_over(path)
            self._tail = Tail(path.parent)
        except BaseException:
            self._connection.close()
            raise
        self._tail.write(self.commits)
        # From now on the database has its pages, so that making room needs hardly any.
        self._make_room()
        self.lock = threading.RLock()
        """Guards the mirror in memory; effects run under it."""
        self._leader = threading.Lock()
        self._gate = threading.Lock()
        self._queue: list[_Ticket[Any]] = []
        self._failure: Exception | None = None

    def _take_over(self, path: Path) -> int:
        self._connection.execute("BEGIN EXCLUSIVE")
        try:
            if not check_format(self._connection, path):
                for statement in filter(str.strip, _TABLES.split(";\n")):
                    self._connection.execute(statement)
            upgrade(self._connection)
            self._connection.execute(f"PRAGMA user_version = {FORMAT}")
            self._digest = self._begin_digest()
            self._connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'epoch'")
            epoch = self._stored_epoch()
            commits = self._count()
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
        self.commits = commits
        self._settled = self._digest.value
        return epoch

    def _begin_digest(self) -> Digest:
        """The digest of the store; a store without one gets one."""
        rows = self._connection.execute
        rows("INSERT OR IGNORE INTO meta VALUES ('commits', 0)")
        ((self.commits,),) = rows("SELECT value FROM meta WHERE key = 'commits'")
        value = stored_digest(rows)
        if value is not None:
            return Digest(self._connection, value)
        value = digest_of(self._connection)
        rows("INSERT INTO meta VALUES (?, ?)", (KEY, value))
        return Digest(self._connection, value)

    def _count(self) -> int:
        """Numbers the transaction that is about to be committed, and updates the digest."""
        commits = self.commits + 1
        self._connection.execute("UPDATE meta SET value = ? WHERE key = 'commits'", (commits,))
        self._connection.execute("UPDATE meta SET value = ? WHERE key = ?", (self._digest.value, KEY))
        return commits

    def write(self, work: Callable[[Transaction], T], *, alone: bool = False) -> T:
        """Runs work inside a transaction, together with the work of other threads; it is durable on return.

        Work that runs ``alone`` has a transaction for itself: memory holds everything that was committed
        before it, and nothing is pending.
        """
        ticket = _Ticket(work, alone)
        with self._gate:
            self._queue.append(ticket)
        with self._leader:
            if not ticket.settled:
                with self._gate:
                    group, self._queue = self._queue, []
                for part in _parts(group):
                    self._run(part)
        if ticket.error is not None:
            raise ticket.error
        return ticket.value  # type: ignore[return-value]

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self._leader:
            return self._connection.execute(query, values).fetchall()

    def close(self) -> None:
        """Closes the database; later writes fail."""
        with self._leader:
            self._failure = self._failure or StoreFailed("the log is closed")
            self._connection.close()
            self._tail.close()

    def _run(self, group: list[_Ticket[Any]]) -> None:
        try:
            effects = self._write_group(group)
            self._apply(effects)
        except BaseException as error:
            failure = self._undo(error)
            for ticket in group:
                ticket.error = ticket.error or failure
            if not isinstance(error, Exception):
                raise
        finally:
            for ticket in group:
                ticket.settled = True

    def _apply(self, effects: list[Callable[[], None]]) -> None:
        with self.lock:
            try:
                for effect in effects:
                    effect()
            except Exception as error:
                self._failure = StoreFailed("memory and store differ; open the log again to go on")
                raise self._failure from error

    def _write_group(self, group: list[_Ticket[Any]]) -> list[Callable[[], None]]:
        if self._failure is not None:
            raise self._failure
        self._connection.execute("BEGIN IMMEDIATE")
        if self._stored_epoch() != self.epoch:
            raise Deposed(
                f"epoch {self.epoch} of this state folder is over: "
                f"another owner opened it with epoch {self._stored_epoch()}, and this one may not write any more"
            )
        draft: dict[tuple[str, int | str], int] = {}
        effects: list[Callable[[], None]] = []
        for ticket in group:
            transaction = Transaction(self._connection, dict(draft))
            if self._attempt(ticket, transaction):
                draft = transaction.draft
                effects += transaction.effects
        commits = self._count()
        self._connection.execute("COMMIT")
        self.commits, self._settled = commits, self._digest.value
        self._tail.write(commits)
        return effects

    def _attempt(self, ticket: _Ticket[Any], transaction: Transaction) -> bool:
        self._connection.execute("SAVEPOINT work")
        digest = self._digest.value
        try:
            ticket.value = ticket.work(transaction)
        except sqlite3.Error:
            raise  # SQLite may have rolled back everything: the whole group fails
        except Exception as error:
            ticket.error = error
            self._connection.execute("ROLLBACK TO work")
            self._digest.value = digest
        self._connection.execute("RELEASE work")
        return ticket.error is None

    def _undo(self, error: BaseException) -> Exception:
        self._digest.value = self._settled
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # SQLite has rolled back by itself
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_FULL:
                self._make_room()
                return LogFull("the disk of the state folder is full")
            self._failure = StoreFailed(f"the store failed ({error}); open the log again to go on")
            self._failure.__cause__ = error
            return self._failure
        if not isinstance(error, Exception):
            # Interrupted, perhaps between the commit and its effects in memory.
            self._failure = StoreFailed("writing was interrupted; open the log again to go on")
            return self._failure
        if isinstance(error, Deposed):
            self._failure = error
        return error

    def _make_room(self) -> None:
        """Moves what the write-ahead log holds into the database, and gives its space back: most of it are versions of
        pages that newer ones have replaced. The next write, which may delete something, finds room there."""
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _stored_epoch(self) -> int:
        return int(self._connection.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()[0])


def _parts(group: list[_Ticket[Any]]) -> list[list[_Ticket[Any]]]:
    parts: list[list[_Ticket[Any]]] = []
    for ticket in group:
        if not parts or ticket.alone or parts[-1][-1].alone:
            parts.append([])
        parts[-1].append(ticket)
    return parts


def check_format(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the database holds a store; a store of another version is refused."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version in _READABLE:
        return True
    if version:
        raise UserError(
            f"state folder {path.parent} has format {version}, this version of Freshet reads format {FORMAT} and "
            "older; use the version that wrote it, or a new state folder"
        )
    if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise UserError(f"{path} is a database, but not one of Freshet; choose another state folder")
    return False


def pack_members(members: Iterable[Sequence[int]]) -> bytes:
    """Packs the members of a file into one value.

    >>> unpack_members(pack_members([(1, 0, 10, 0, 500, 7, 9)]))
    [[1, 0, 10, 0, 500, 7, 9]]
    """
    return np.array(list(members), dtype="<i8").tobytes()


def unpack_members(packed: bytes) -> list[list[int]]:
    """The reverse of :func:`pack_members`."""
    members: list[list[int]] = np.frombuffer(packed, dtype="<i8").reshape(-1, 7).tolist()
    return members


def pack_offsets(offsets: Iterable[int]) -> bytes:
    """Packs offsets into one value.

    >>> unpack_offsets(pack_offsets([3, 2**40]))
    [3, 1099511627776]
    """
    return np.array(list(offsets), dtype="<i8").tobytes()


def unpack_offsets(packed: bytes) -> list[int]:
    """The reverse of :func:`pack_offsets`."""
    offsets: list[int] = np.frombuffer(packed, dtype="<i8").tolist()
    return offsets
