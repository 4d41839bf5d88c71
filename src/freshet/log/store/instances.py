"""Releases of periodic queries and what came of them: entries of the log, as watermarks and versions are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from freshet.log.store.store import Transaction
from freshet.log.store.upgrade import INSTANCES
from freshet.model import Instance

_COLUMNS: Final = ", ".join(INSTANCES)
_MARKS: Final = ", ".join("?" * len(INSTANCES))
# No REPLACE: the digest of the store would not hear of the row that goes.
_WRITE: Final = (
    f"INSERT INTO instances ({_COLUMNS}) VALUES ({_MARKS}) ON CONFLICT (query, release) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in INSTANCES if name not in ("query", "release"))
)
MOST: Final = 100_000
"""Number of instances of a query that are remembered; a few more are for a while."""
_NOW_AND_THEN: Final = 100
"""Seconds between looks whether there are more."""


def write(tx: Transaction, one: Instance) -> None:
    """Enters an instance, or what became of it."""
    values = (one.query, one.release, one.deadline, json.dumps(dict(one.ends)), one.state, json.dumps(dict(one.kept)),
              one.quality, one.first, one.rows, one.started, one.finished, one.reason, one.since)  # fmt: skip
    tx.execute(_WRITE, values)


def forget_old(tx: Transaction, one: Instance, oldest: int) -> None:
    """Forgets instances of the same query whose answers retention has removed, and now and then those beyond
    :data:`MOST`."""
    before = one.query, one.release
    tx.execute("DELETE FROM instances WHERE query = ? AND release < ? AND first < ? AND state <> 'waiting'",
               (*before, oldest))  # fmt: skip
    if one.release // 1_000_000 % _NOW_AND_THEN == 0:
        tx.execute("DELETE FROM instances WHERE query = ? AND release < ? AND state <> 'waiting' AND release < "
                   "(SELECT release FROM instances WHERE query = ? ORDER BY release DESC LIMIT 1 OFFSET ?)",
                   (*before, one.query, MOST))  # fmt: skip


def took(tx: Transaction, query: str, release: int) -> None:
    """Notes the last release that was taken of a query; at first, when it was started."""
    tx.execute("INSERT INTO releases VALUES (?, ?) ON CONFLICT (query) DO UPDATE SET last = excluded.last",
               (query, release))  # fmt: skip


def forget(tx: Transaction, query: str) -> None:
    """Forgets a query that starts anew."""
    tx.execute("DELETE FROM instances WHERE query = ?", (query,))
    tx.execute("DELETE FROM releases WHERE query = ?", (query,))


StoreRows = Callable[[str], Iterable[tuple[Any, ...]]]


def last_release(rows: StoreRows, query: str) -> int | None:
    """The last release that was taken of a query."""
    return next((last for name, last in rows("SELECT query, last FROM releases") if name == query), None)


def entries(rows: StoreRows, where: str = "") -> list[Instance]:
    """Instances by release."""
    # A folder of an earlier version stays as it is if it is only read.
    there = {each[1] for each in rows("PRAGMA table_info(instances)")}
    if not there:
        return []
    columns = ", ".join(name for name in INSTANCES if name in there)
    found = rows(f"SELECT {columns} FROM instances {where} ORDER BY release, query")
    return [_instance(*row) for row in found]


def _instance(query: str, release: int, deadline: int, ends: str, state: Any, kept: str, *rest: Any) -> Instance:
    return Instance(query, release, deadline, json.loads(ends), state, json.loads(kept), *rest)
