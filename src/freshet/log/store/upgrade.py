"""Upgrades the store of an earlier version to this one."""

from __future__ import annotations

import sqlite3
from typing import Final

from freshet.log import old_names
from freshet.log.store.digest import KEY

LEDGER: Final = {
    "query": "TEXT NOT NULL", "edge": "TEXT NOT NULL", "stream": "TEXT NOT NULL", "kind": "TEXT NOT NULL",
    "first": "INTEGER NOT NULL", "end": "INTEGER NOT NULL", "rows": "INTEGER NOT NULL", "ratio": "REAL", "rule": "TEXT",
    "reason": "TEXT NOT NULL", "since": "INTEGER NOT NULL", "time": "INTEGER NOT NULL",
}  # fmt: skip
"""Columns of the table ``ledger``."""
INSTANCES: Final = {
    "query": "TEXT NOT NULL", "release": "INTEGER NOT NULL", "deadline": "INTEGER NOT NULL", "ends": "TEXT NOT NULL",
    "state": "TEXT NOT NULL", "kept": "TEXT NOT NULL", "quality": "REAL NOT NULL", "first": "INTEGER NOT NULL",
    "rows": "INTEGER NOT NULL", "started": "INTEGER NOT NULL", "finished": "INTEGER NOT NULL",
    "reason": "TEXT NOT NULL", "since": "INTEGER NOT NULL DEFAULT -1",
}  # fmt: skip
"""Columns of the table ``instances``."""


def upgrade(connection: sqlite3.Connection) -> None:
    """Adds what a store of an earlier version lacks; a store of this version stays as it is."""
    if not _has(connection, "streams", "clock"):
        _add_clock(connection)
    if not _has(connection, "streams", "kind"):
        _add_kinds(connection)
        # Every row has changed.
        _forget_digest(connection)
    if not _has(connection, "records", "value"):
        _add_records(connection)
        _forget_digest(connection)
    if not _has(connection, "ledger", "kind"):
        _add_ledger(connection)
        _forget_digest(connection)
    if not _has(connection, "instances", "release"):
        _add_instances(connection)
        _forget_digest(connection)
    if not _has(connection, "instances", "since"):
        connection.execute(f"ALTER TABLE instances ADD COLUMN since {INSTANCES['since']}")
        _forget_digest(connection)
    if not _has(connection, "key_marks", "key"):
        _add_key_marks(connection)
        _forget_digest(connection)
    if not _has(connection, "key_marks", "joined"):
        # Version 9 had no joins with bounds.
        connection.execute("ALTER TABLE key_marks ADD COLUMN joined TEXT NOT NULL DEFAULT ''")
        _forget_digest(connection)


def _forget_digest(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM meta WHERE key = ?", (KEY,))


def _add_records(connection: sqlite3.Connection) -> None:
    """Upgrades from version 4, in which sources kept no records."""
    connection.execute(
        "CREATE TABLE records (stream INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, "
        "PRIMARY KEY (stream, key)) WITHOUT ROWID"
    )


def _add_instances(connection: sqlite3.Connection) -> None:
    """Upgrades from version 7, in which no periodic query ran."""
    columns = ", ".join(f"{name} {kind}" for name, kind in INSTANCES.items())
    connection.execute(f"CREATE TABLE instances ({columns}, PRIMARY KEY (query, release)) WITHOUT ROWID")
    connection.execute("CREATE TABLE releases (query TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID")


def _add_key_marks(connection: sqlite3.Connection) -> None:
    """Upgrades from version 8, in which streams had no ordered keys."""
    connection.execute("ALTER TABLE streams ADD COLUMN ordered TEXT")
    connection.execute("ALTER TABLE streams ADD COLUMN disorder BLOB")
    connection.execute("ALTER TABLE streams ADD COLUMN past INTEGER NOT NULL DEFAULT 0")
    connection.execute(
        "CREATE TABLE key_marks (sequence INTEGER PRIMARY KEY, stream INTEGER NOT NULL, at INTEGER NOT NULL, "
        "key INTEGER, past BLOB NOT NULL)"
    )
    connection.execute("CREATE INDEX key_marks_by_stream ON key_marks (stream, at)")


def _add_ledger(connection: sqlite3.Connection) -> None:
    """Makes the ledger of a new store. Upgrades from version 6, whose ledger had what readers lost to retention."""
    is_old = _has(connection, "ledger", "why")
    known = connection.execute(earlier(has_owners=True)).fetchall() if is_old else []
    connection.execute("DROP TABLE IF EXISTS ledger")
    connection.execute(f"CREATE TABLE ledger ({', '.join(f'{name} {kind}' for name, kind in LEDGER.items())})")
    connection.execute("CREATE INDEX ledger_by_edge ON ledger (edge, end)")
    connection.executemany(f"INSERT INTO ledger VALUES ({', '.join('?' * len(LEDGER))})", known)


def earlier(has_owners: bool) -> str:
    """Selects the entries of a ledger of version 6 or older in their present form; ``has_owners``: it is known which
    query a reader belongs to."""
    owner = "coalesce((SELECT owner FROM readers WHERE readers.name = ledger.reader), '')" if has_owners else "''"
    return (
        f"SELECT {owner}, reader, stream, 'lost', first, end, end - first, NULL, NULL, why, time, time FROM ledger "
        "ORDER BY ledger.rowid"
    )


def _has(connection: sqlite3.Connection, table: str, column: str) -> bool:
    return any(each[1] == column for each in connection.execute(f"PRAGMA table_info({table})"))


def _add_clock(connection: sqlite3.Connection) -> None:
    """Upgrades from version 1; its heartbeats told the time of day, not event time."""
    connection.execute("ALTER TABLE streams ADD COLUMN clock TEXT")
    connection.execute("DELETE FROM heartbeats")
    connection.execute("CREATE INDEX heartbeats_by_stream ON heartbeats (stream, at)")


def _add_kinds(connection: sqlite3.Connection) -> None:
    """Upgrades from version 3, in which names told what streams and readers are for."""
    connection.execute("ALTER TABLE streams ADD COLUMN kind TEXT NOT NULL DEFAULT 'stream'")
    connection.execute("ALTER TABLE readers ADD COLUMN kind TEXT NOT NULL DEFAULT 'operator'")
    connection.execute("ALTER TABLE readers ADD COLUMN owner TEXT NOT NULL DEFAULT ''")
    connection.execute(
        "CREATE TABLE queries (name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, state TEXT NOT NULL DEFAULT '{}') "
        "WITHOUT ROWID"
    )
    streams = connection.execute("SELECT name, clock FROM streams").fetchall()
    connection.executemany(
        "UPDATE streams SET kind = ? WHERE name = ?",
        [(old_names.stream_kind(name, clock is not None), name) for name, clock in streams],
    )
    readers = connection.execute(
        "SELECT readers.name, streams.name FROM readers JOIN streams ON streams.id = readers.stream"
    ).fetchall()
    connection.executemany(
        "UPDATE readers SET kind = ?, owner = ? WHERE name = ?",
        [(*old_names.reader_kind(name, stream), name) for name, stream in readers],
    )
