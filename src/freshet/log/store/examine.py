"""Checks whether a store is intact, before it is used. Nothing here writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from freshet.log.errors import Damaged
from freshet.log.store.digest import digest_of, stored_digest
from freshet.log.store.store import check_format
from freshet.log.store.tail import Witness
from freshet.model import UserError

STORE: Final = "store.db"
# These keep even an intact database from being read: permissions, locks, the disk.
_NOT_DAMAGE: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PERM,
                      sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM}  # fmt: skip


def examine(state: Path) -> None:
    """Checks a state folder that its owner is about to open.

    Raises:
        Damaged: The store is missing beside segments, damaged, or has lost commits.
        UserError: It is a store of another version, or not a store of Freshet.
    """
    with suppress(NoLog):
        examined(state).close()


def examined(state: Path) -> sqlite3.Connection:
    """A read-only connection to an intact store.

    Raises:
        NoLog: There is none yet.
        Damaged: As in :func:`examine`.
        UserError: As in :func:`examine`.
    """
    path = state / STORE
    witness = Witness.of(state)
    if not path.exists() or not path.stat().st_size:
        if found := _left_behind(state, witness):
            raise Damaged(f"{path} is missing or empty, but {found}: what they hold is known to the store alone; put "
                          "the store back, or choose another state folder (nothing was deleted)")  # fmt: skip
        raise NoLog(f"{state} holds no log: there is no {STORE} in it")
    connection = connect(path)
    try:
        with _snapshot(connection, path):
            for problem in problems(connection, path, witness):
                raise Damaged(problem)
    except BaseException:
        connection.close()
        raise
    return connection


def problems(connection: sqlite3.Connection, path: Path, witness: Witness) -> Iterator[str]:
    """What is wrong with a store, in a sentence each; what is cheapest to find comes first.

    Raises:
        NoLog: It holds nothing yet.
        UserError: It is a store of another version, or not a store of Freshet.
    """
    if not check_format(connection, path):
        if found := _left_behind(path.parent, witness):
            yield f"{path} holds nothing, but {found}: put the store back, or choose another state folder"
        raise NoLog(f"{path.parent} holds no log yet")
    commits = _number(connection, "commits")
    if witness.commits > (commits or 0):
        beyond = witness.beyond(commits or 0)
        names = ", ".join(beyond[:3]) + (f" and {len(beyond) - 3} more" if len(beyond) > 3 else "")
        yield (
            f"{path} has lost commits: it ends at {commits or 0}, but there were {witness.commits} (says {names}); "
            f"put back {STORE} and {STORE}-wal as they were, or choose another state folder (nothing was deleted)"
        )
    for (text,) in connection.execute("PRAGMA integrity_check(3)"):
        if text != "ok":
            yield f"{path} is damaged: {_line(text)}"
    stored = stored_digest(connection.execute)
    if (stored is None) != (commits is None) or (stored is not None and stored != digest_of(connection)):
        yield f"{path} is damaged: its rows do not give its digest"


class NoLog(UserError):
    """There is no log in a folder yet."""


def connect(path: Path) -> sqlite3.Connection:
    """A read-only connection to a store, even while its owner writes."""

    def open_as(options: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{options}",
            uri=True,
            timeout=30,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    with told(path):
        try:
            return open_as("mode=ro")
        except sqlite3.OperationalError:
            # In a read-only folder SQLite cannot make the files that it shares with a writer.
            # Without a write-ahead log there is no writer, and the database is all there is.
            if path.with_name(path.name + "-wal").exists():
                raise
            return open_as("mode=ro&immutable=1")


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turns SQLite's errors, and rows that make no sense, into a sentence about a store."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_DAMAGE:
            raise UserError(f"{path} cannot be read: {error}") from error
        raise Damaged(f"{path} is damaged: {_line(str(error))}") from error
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        raise Damaged(f"{path} is damaged: {type(error).__name__} while its rows were read: {error}") from error


@contextmanager
def _snapshot(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    with told(path):
        connection.execute("BEGIN")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")


def _number(connection: sqlite3.Connection, key: str) -> int | None:
    with closing(connection.execute("SELECT value FROM meta WHERE key = ?", (key,))) as found:
        row = found.fetchone()
    return None if row is None else int(row[0])


def _left_behind(state: Path, witness: Witness) -> str | None:
    """What shows that there was a store."""
    if witness.files:
        return f"{len(witness.files)} segment files lie beside it"
    if witness.tail:
        return f"the file tail knows of {witness.tail} commits"
    log = state / f"{STORE}-wal"
    return f"{log.name} lies beside it" if log.exists() and log.stat().st_size else None


def _line(text: str) -> str:
    return " ".join(text.split())
