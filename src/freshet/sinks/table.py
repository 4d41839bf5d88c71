"""A table of a database, each row exactly once."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from freshet.model import UserError
from freshet.sinks.databases import Database, Postgres, Sqlite, quoted, rows_of
from freshet.sinks.sink import SinkOptions, Token
from freshet.sources.options import LocalPath

PROGRESS: Final = "freshet_progress"
"""The table that holds the offset up to which each sink has written its output."""

_URLS: Final = ("postgresql://", "postgres://")

# PostgreSQL would take the rest of such a password for a host or a port, and name it in its errors.
_SPECIAL: Final = re.compile(r"://(?=[^?]*@)(?![^@:/\s]*(?::[^@:/#\[\]\s]*)?@[^@]*(?:\?|$))")


class TableOptions(SinkOptions):
    """Options of the sink kind ``table``.

    Args:
        path: File of an SQLite database; it and its folder are made if needed.
        url: Or a PostgreSQL database: ``postgresql://user@host/name``.
        table: The table; made with the first rows if there is none.
        keys: Columns that tell rows apart: a row replaces the one with the same values there. Without keys every row is
            added.
        append: Writes to a table that already holds rows. Without it such a table is refused, unless this sink itself
            wrote them.
    """

    path: LocalPath | None = None
    url: str | None = None
    table: str = Field(min_length=1)
    keys: list[str] = Field(default_factory=list)
    append: bool = False

    @field_validator("url")
    @classmethod
    def _is_postgres(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(_URLS):
            raise ValueError("must begin with postgresql:// (for an SQLite database give its path)")
        if url is not None and _SPECIAL.search(url):
            raise ValueError(
                "has a user or a password with special characters: write them as %XX, such as %40 instead of @"
            )
        if url is not None and find_spec("psycopg") is None:
            raise ValueError("needs the package psycopg: install freshet[postgres]")
        return url

    @field_validator("keys")
    @classmethod
    def _each_once(cls, keys: list[str]) -> list[str]:
        if len(set(keys)) < len(keys):
            raise ValueError("a column appears twice")
        return keys

    @field_validator("table")
    @classmethod
    def _not_ours(cls, table: str) -> str:
        if table.rpartition(".")[2].lower() == PROGRESS:
            raise ValueError(f"{PROGRESS} is kept for the progress of sinks: choose another name")
        return table

    @model_validator(mode="after")
    def _one_database(self) -> TableOptions:
        if (self.path is None) == (self.url is None):
            raise ValueError("give the path of an SQLite database or the url of a PostgreSQL one")
        return self


class TableSink:
    """Adds rows to a table, or replaces those with the same keys.

    Its progress is in the database itself, in :data:`PROGRESS`, and moves in the transaction of the rows. So rows
    that come again after a failure are recognised and left out.
    """

    def __init__(self, options: TableOptions) -> None:
        self.arrival = options.arrival
        self._options = options
        self._id = ""
        self.note: str | None = None
        self._database: Database | None = None
        self._statement: tuple[pa.Schema, str] | None = None

    def open(self, state: Mapping[str, Any]) -> dict[str, Any]:
        self.close()
        self._id = str(state.get("id") or secrets.token_hex(8))
        self._database = database = self._connect()
        try:
            with database.transaction():
                database.execute(
                    f"CREATE TABLE IF NOT EXISTS {PROGRESS} (target VARCHAR(500) NOT NULL, sink VARCHAR(50) NOT NULL,"
                    " query VARCHAR(500) NOT NULL, next BIGINT NOT NULL, PRIMARY KEY (target, sink))"
                )
                why = self._refusal(database, self._id)
        except BaseException:
            self.close()
            raise
        if why is not None:
            self.close()
            raise UserError(why)
        return {"id": self._id, "table": self._options.table}

    def refusal(self, state: Mapping[str, Any]) -> str | None:
        """Why it must not or cannot write to its table, given what it kept; None if it may."""
        if self._options.path is not None and not self._file(self._options.path).exists():
            return None
        try:
            database = self._connect()
        except UserError as error:
            return str(error)
        try:
            return self._refusal(database, state.get("id"))
        finally:
            database.close()

    def write(self, table: pa.Table, token: Token) -> dict[str, Any]:
        database = self._database
        assert database is not None, "open comes first"
        with database.transaction():
            known = self._next(database, self._id)
            new = table if known is None else table.slice(min(max(known - token.first, 0), table.num_rows))
            if new.num_rows:
                self._insert(database, new)
            self._set_next(database, token, known)
        return {"id": self._id, "table": self._options.table}

    def close(self) -> None:
        if self._database is not None:
            if not self._database.is_there():
                self.note = (
                    f"database {self._database.name} was deleted or replaced: rows that were written to it before are "
                    "gone, later ones are in the file that is there now"
                )
            self._database.close()
            self._database = None
        self._statement = None

    def _connect(self) -> Database:
        if self._options.url is not None:
            return Postgres(self._options.url)
        assert self._options.path is not None
        path = self._file(self._options.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return Sqlite(path)

    def _file(self, path: Path) -> Path:
        return path.expanduser().absolute()

    def _refusal(self, database: Database, identity: str | None) -> str | None:
        table = self._options.table
        if self._options.append or not database.columns(table):
            return None
        if identity is not None and database.columns(PROGRESS) and self._next(database, identity) is not None:
            return None
        if not database.execute(f"SELECT 1 FROM {database.quoted(table)} LIMIT 1"):
            return None
        return (
            f"table {table} of {database.name} holds rows already, and this sink did not write them: choose another "
            "table, empty it, or set append = true to write to it all the same"
        )

    def _next(self, database: Database, identity: str) -> int | None:
        found = database.execute(
            f"SELECT next FROM {PROGRESS} WHERE target = ? AND sink = ?{database.lock_row}",
            (self._options.table, identity),
        )
        return int(found[0][0]) if found else None

    def _set_next(self, database: Database, token: Token, known: int | None) -> None:
        if known is None:
            database.execute(
                f"INSERT INTO {PROGRESS} (target, sink, query, next) VALUES (?, ?, ?, ?)",
                (self._options.table, self._id, token.stream, token.end),
            )
        elif token.end > known:
            database.execute(
                f"UPDATE {PROGRESS} SET next = ?, query = ? WHERE target = ? AND sink = ?",
                (token.end, token.stream, self._options.table, self._id),
            )

    def _insert(self, database: Database, rows: pa.Table) -> None:
        if self._statement is None or self._statement[0] != rows.schema:
            self._prepare(database, rows.schema)
            self._statement = rows.schema, self._insertion(database, rows.schema.names)
        try:
            database.execute_many(self._statement[1], rows_of(rows))
        except Exception as error:
            # The table may be made anew when the rows come again.
            self._statement = None
            if "ON CONFLICT" in str(error):
                keys = ", ".join(self._options.keys)
                raise UserError(f"table {self._options.table} needs a unique index over its keys: {keys}") from None
            raise

    def _prepare(self, database: Database, schema: pa.Schema) -> None:
        """Makes the table, or checks that it has what is needed."""
        options, known = self._options, database.columns(self._options.table)
        strange = [key for key in options.keys if key not in schema.names]
        if strange:
            raise UserError(f"keys: the query has no column {', '.join(strange)} (it has: {', '.join(schema.names)})")
        missing = [name for name in schema.names if name not in known]
        if known and missing:
            raise UserError(
                f"table {options.table} of {database.name} has no column {', '.join(missing)}: add it, or choose "
                "another table"
            )
        if not known:
            self._create(database, schema)

    def _create(self, database: Database, schema: pa.Schema) -> None:
        table, keys = self._options.table, self._options.keys
        columns = ", ".join(f"{quoted(field.name)} {database.type_of(field.type)}" for field in schema)
        database.execute(f"CREATE TABLE {database.quoted(table)} ({columns})")
        if keys:
            index = quoted(f"{table.rpartition('.')[2]}_keys")
            database.execute(f"CREATE UNIQUE INDEX {index} ON {database.quoted(table)} ({_names(keys)})")

    def _insertion(self, database: Database, columns: Sequence[str]) -> str:
        places = ", ".join("?" for _ in columns)
        insert = f"INSERT INTO {database.quoted(self._options.table)} ({_names(columns)}) VALUES ({places})"
        if not self._options.keys:
            return insert
        others = [name for name in columns if name not in self._options.keys]
        change = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)
        return f"{insert} ON CONFLICT ({_names(self._options.keys)}) DO " + (
            f"UPDATE SET {change}" if change else "NOTHING"
        )


def _names(columns: Sequence[str]) -> str:
    return ", ".join(map(quoted, columns))


KINDS: Final = {"table": (TableOptions, TableSink)}
