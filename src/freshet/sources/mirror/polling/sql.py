"""Polls rows of a database: SQLite or PostgreSQL, with a change key that is cheaper than the rows."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from freshet.model.messages import masked
from freshet.sources.mirror.polling.answer import PollAnswer, PollFailed, Spend, Validator

_POSTGRES: Final = ("postgresql://", "postgres://")
SqlRows = list[dict[str, Any]]


class SqlFetcher:
    """Polls elements of a database; a statement has one ``?`` where the element goes.

    If there is a change key, it is asked first: one value, such as a version or the time of the last update. The rows
    are read only if it differs from the last one. A key that is a time is also the time of the change.

    Args:
        database: Path of a SQLite file, or an address ``postgresql://...``.
        query: Rows of an element.
        change_key: One value that differs after every change of an element.
        executor: Threads for the statements.
        timeout: Maximum number of seconds for a poll.
    """

    def __init__(
        self, database: str, query: str, change_key: str | None, executor: Executor, timeout: float = 10.0
    ) -> None:
        self._database, self._query, self._change_key = database, query, change_key
        self._executor, self._timeout = executor, timeout
        self._local = threading.local()
        self._open: list[Any] = []

    def host(self, element: str) -> str:
        return ""

    def check(self, element: str) -> None:
        """Every text can be a key."""

    async def fetch(self, element: str, validator: Validator, spend: Spend) -> PollAnswer:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout):
                return await loop.run_in_executor(self._executor, self.read, element, validator)
        except TimeoutError:
            raise PollFailed(f"no rows within {self._timeout:g} s") from None

    def read(self, element: str, validator: Validator) -> PollAnswer:
        """Reads the rows of an element, unless its change key is what the validator says."""
        try:
            connection = self._connection()
            found, modified = dict[str, Any](), None
            if self._change_key is not None:
                key = next((value for (value, *_) in _rows(connection, self._change_key, (element,))[1]), None)
                found, modified = {"key": str(key)}, _seconds(key)
                if found == validator:
                    return PollAnswer(None, validator, modified)
            names, rows = _rows(connection, self._query, (element,))
        except Exception as error:  # each driver has its own; the connection may be gone
            self._forget()
            raise PollFailed(masked(" ".join(str(error).split()))) from None
        content = [dict(zip(names, row, strict=True)) for row in rows]
        return PollAnswer(content, found, modified, sum(len(str(value)) for row in rows for value in row))

    def _connection(self) -> Any:
        known = getattr(self._local, "connection", None)
        if known is None:
            known = self._local.connection = connect(self._database, self._timeout)
            self._open.append(known)
        return known

    def _forget(self) -> None:
        known, self._local.connection = getattr(self._local, "connection", None), None
        if known is not None:
            with suppress(Exception):
                known.close()

    async def close(self) -> None:
        for connection in self._open:
            with suppress(Exception):
                connection.close()


def is_sqlite(database: str) -> bool:
    """Whether a database is a file of SQLite.

    >>> is_sqlite("shop.db"), is_sqlite("postgresql://localhost/shop")
    (True, False)
    """
    return not database.startswith(_POSTGRES)


def connect(database: str, timeout: float) -> Any:
    """A connection that only reads."""
    if not is_sqlite(database):
        psycopg = import_module("psycopg")
        milliseconds = max(1, round(timeout * 1000))
        options = f"-c default_transaction_read_only=on -c statement_timeout={milliseconds}"
        return psycopg.connect(database, autocommit=True, connect_timeout=max(1, round(timeout)), options=options)
    uri = f"{Path(database).absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)


def _rows(connection: Any, statement: str, values: Sequence[Any]) -> tuple[list[str], list[tuple[Any, ...]]]:
    is_sqlite = isinstance(connection, sqlite3.Connection)
    cursor = connection.execute(statement if is_sqlite else _marked(statement), values)
    return [column[0] for column in cursor.description or ()], list(cursor.fetchall())


def _marked(statement: str) -> str:
    """A statement with the placeholders of psycopg; text in quotes stays as it is.

    >>> _marked("SELECT v FROM t WHERE k = ? AND s <> '?%'")
    "SELECT v FROM t WHERE k = %s AND s <> '?%%'"
    """
    return re.sub(
        r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\?|%",
        lambda found: "%s" if found.group() == "?" else found.group().replace("%", "%%"),
        statement,
    )


def _seconds(key: Any) -> float | None:
    """The time that a change key tells, if it is a time with a zone."""
    return key.timestamp() if isinstance(key, datetime) and key.tzinfo is not None else None
