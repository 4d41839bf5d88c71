"""A digest over all rows of the store, kept in the store: SQLite does not notice a flipped bit in a value."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

TABLES: Final = ("meta", "streams", "segments", "heartbeats", "readers", "ledger", "queries", "records",
                 "instances", "releases", "key_marks")  # fmt: skip
KEY: Final = "digest"
"""Its key in the table ``meta``; stores of versions without a digest have no such row."""


class Digest:
    """The sum over the CRC-32 of all rows, as they come and go on one connection. Triggers of this connection
    alone keep it up to date, so that no statement can forget to.

    Args:
        connection: The writer's.
        value: The digest of the present rows.
    """

    def __init__(self, connection: sqlite3.Connection, value: int) -> None:
        self.value = value
        connection.create_function("freshet_row", 2, self._change)
        for statement in _triggers(connection):
            connection.execute(statement)

    def _change(self, old: str | None, new: str | None) -> None:
        self.value += _sum(new) - _sum(old)


def digest_of(connection: sqlite3.Connection) -> int:
    """The digest of what a database holds, including the declarations of its tables.

    >>> connection = sqlite3.connect(":memory:")
    >>> for table in TABLES:
    ...     _ = connection.execute(f"CREATE TABLE {table} (key TEXT, value INTEGER)")
    >>> digest = Digest(connection, digest_of(connection))
    >>> _ = connection.execute("INSERT INTO readers VALUES ('q', 1)")
    >>> _ = connection.execute("UPDATE readers SET value = 2")
    >>> digest.value == digest_of(connection)
    True
    """
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    texts = [f"SELECT {_text(connection, table, '')} FROM {table}" for table in TABLES if table in there]
    texts[0] += f" WHERE key <> '{KEY}'"
    texts.append("SELECT quote(type) || quote(name) || quote(tbl_name) || quote(sql) FROM sqlite_master")
    return sum(_sum(row) for query in texts for (row,) in connection.execute(query))


def stored_digest(rows: Callable[[str], Iterable[tuple[Any, ...]]]) -> int | None:
    """The digest that a store keeps; None if a version without digests wrote it."""
    return next((value for (value,) in rows(f"SELECT value FROM meta WHERE key = '{KEY}'")), None)


def _sum(row: str | None) -> int:
    return 0 if row is None else zlib.crc32(row.encode())


def _text(connection: sqlite3.Connection, table: str, row: str) -> str:
    columns = [column[1] for column in connection.execute(f"PRAGMA table_info({table})")]
    return " || ',' || ".join([f"'{table}'", *(f'quote({row}"{column}")' for column in columns)])


def _triggers(connection: sqlite3.Connection) -> Iterator[str]:
    for table in TABLES:
        old, new = (_text(connection, table, row) for row in ("OLD.", "NEW."))
        for event, row, values in (
            ("INSERT", "NEW", f"NULL, {new}"),
            ("UPDATE", "NEW", f"{old}, {new}"),
            ("DELETE", "OLD", f"{old}, NULL"),
        ):
            when = f"WHEN {row}.key <> '{KEY}'" if table == "meta" else ""
            yield (
                f"CREATE TEMP TRIGGER freshet_{table}_{event} AFTER {event} ON main.{table} {when} "
                f"BEGIN SELECT freshet_row({values}); END"
            )
