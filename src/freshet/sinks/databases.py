"""The databases that a table sink writes to: how SQLite and PostgreSQL express the same things."""

from __future__ import annotations

import json
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from freshet.model import FreshetError, UserError
from freshet.model.messages import masked
from freshet.sinks.rows import json_values, plain


class Database(ABC):
    """A connection; statements have ``?`` where values go."""

    name: str
    """Its name for people, without a password."""
    lock_row: ClassVar[str] = ""
    """The end of a SELECT that reads a row that is about to be changed."""

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement; returns its rows, if it has any."""

    @abstractmethod
    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Runs a statement for every row."""

    @abstractmethod
    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Makes everything that is done inside take effect, or nothing."""

    @abstractmethod
    def columns(self, table: str) -> list[str]:
        """Columns of a table; empty if there is no such table."""

    @abstractmethod
    def type_of(self, kind: pa.DataType) -> str:
        """The type of a column that holds values of an Arrow type."""

    @abstractmethod
    def quoted(self, table: str) -> str:
        """A table's name as a statement writes it."""

    def is_there(self) -> bool:
        """Whether others find what is written here."""
        return True

    @abstractmethod
    def close(self) -> None:
        """Ends the connection."""


class DatabaseGone(FreshetError):
    """What was written is in a database that nobody can find: it must be written again."""


class Sqlite(Database):
    """A database in a file.

    >>> database = Sqlite(Path(":memory:"))
    >>> with database.transaction():
    ...     _ = database.execute("CREATE TABLE t (v)")
    >>> database.columns("t"), database.columns("u"), database.type_of(pa.int8())
    (['v'], [], 'INTEGER')
    >>> database.close()
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        try:
            self._connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
            self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            self._file = _identity(path)
        except sqlite3.Error as error:
            raise UserError(f"database {path} cannot be opened: {error}") from None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()
        # SQLite itself would continue in the file that nobody can find any more.
        if not self.is_there():
            raise DatabaseGone(f"database {self.name} was deleted or replaced while it was written to")

    def columns(self, table: str) -> list[str]:
        return [name for (name,) in self.execute("SELECT name FROM pragma_table_info(?)", (table,))]

    def type_of(self, kind: pa.DataType) -> str:
        if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
            return "INTEGER"
        if pa.types.is_floating(kind):
            return "REAL"
        return "BLOB" if pa.types.is_binary(kind) else "TEXT"

    def quoted(self, table: str) -> str:
        return quoted(table)

    def is_there(self) -> bool:
        return _identity(self._path) == self._file

    def close(self) -> None:
        self._connection.close()


class Postgres(Database):
    """A PostgreSQL server, by psycopg (the extra ``postgres``)."""

    lock_row = " FOR UPDATE"
    _TYPES: ClassVar = {
        pa.bool_(): "boolean", pa.int8(): "smallint", pa.int16(): "smallint", pa.int32(): "integer",
        pa.int64(): "bigint", pa.float32(): "real", pa.float64(): "double precision", pa.string(): "text",
        pa.binary(): "bytea", pa.date32(): "date", pa.timestamp("us", tz="UTC"): "timestamptz",
        pa.timestamp("us"): "timestamp",
    }  # fmt: skip

    def __init__(self, url: str) -> None:
        self.name = masked(url)
        psycopg = import_module("psycopg")
        try:
            self._connection: Any = psycopg.connect(url, autocommit=True, connect_timeout=10)
        except psycopg.Error as error:
            reason = next(iter(masked(str(error)).splitlines()), type(error).__name__)
            raise UserError(f"database {self.name} cannot be reached: {reason}") from None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(_marked(statement), values)
        return list(cursor.fetchall()) if cursor.description else []

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_marked(statement), rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._connection.transaction():
            yield

    def columns(self, table: str) -> list[str]:
        found = self.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped"
            " ORDER BY attnum",
            (self.quoted(table),),
        )
        return [name for (name,) in found]

    def type_of(self, kind: pa.DataType) -> str:
        if pa.types.is_decimal(kind):
            return f"numeric({kind.precision}, {kind.scale})"
        if pa.types.is_nested(kind):
            return "jsonb"
        return self._TYPES.get(kind, "text")

    def quoted(self, table: str) -> str:
        """A name may have a schema before it: ``reports.large``."""
        return ".".join(map(quoted, table.split(".")))

    def close(self) -> None:
        with suppress(Exception):
            self._connection.close()


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file is at a path."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def quoted(name: str) -> str:
    """A name as a statement writes it, whatever characters it holds.

    >>> print(quoted('5" disk'))
    "5"" disk"
    """
    return '"' + name.replace('"', '""') + '"'


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as both databases take them: times, dates and decimals as text with all digits, nested values as JSON.

    >>> from decimal import Decimal
    >>> rows_of(pa.table({"d": [Decimal("1.50")], "l": [[1, 2]], "b": [b"x"]}))
    [('1.50', '[1, 2]', b'x')]
    """
    return list(zip(*(_values(column) for column in table.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_nested(kind):
        return [None if value is None else json.dumps(plain(value)) for value in json_values(column)]
    if pa.types.is_floating(kind) or pa.types.is_binary(kind):
        return list(column.to_pylist())
    return json_values(column)


def _marked(statement: str) -> str:
    """A statement with placeholders as psycopg wants them; names may hold the same signs.

    >>> _marked('SELECT "100%?" FROM t WHERE v = ?')
    'SELECT "100%%?" FROM t WHERE v = %s'
    """
    return re.sub(
        r'"(?:[^"]|"")*"|\?',
        lambda found: "%s" if found.group() == "?" else found.group().replace("%", "%%"),
        statement,
    )
