"""The ledger: what the answers of queries lack, and why. An answer is a function of log and ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import astuple
from typing import Any, Final

from freshet.log.store.store import Transaction
from freshet.log.store.upgrade import LEDGER, earlier
from freshet.model import Missing

_COLUMNS: Final = ", ".join(LEDGER)
_SAME: Final = (
    "SELECT rowid FROM ledger WHERE edge = ? AND end = ? AND query = ? AND stream = ? AND kind = ? AND ratio IS ? "
    "AND rule IS ? AND reason = ?"
)

_OLD: Final = (
    "DELETE FROM ledger WHERE query = ? AND stream = ? AND end <= ? AND time < ? "
    "AND rowid NOT IN (SELECT max(rowid) FROM ledger GROUP BY edge, stream)"
)


def enter(tx: Transaction, entry: Missing, now: int) -> None:
    """Enters what is missing. If units leave tuples out by the same rule, one after the other, their entry grows: so
    the ledger grows with the number of changes, not with the number of units.

    Args:
        tx: The transaction: that of the unit whose answers lack the tuples.
        entry: What is missing.
        now: The present, in microseconds.
    """
    found = None if entry.rule is None else _entry_before(tx, entry)
    if found is not None:
        tx.execute("UPDATE ledger SET end = ?, rows = rows + ?, time = ? WHERE rowid = ?",
                   (entry.end, entry.rows, now, *found))  # fmt: skip
        return
    values = (*astuple(entry)[:-2], now, now)
    tx.execute(f"INSERT INTO ledger ({_COLUMNS}) VALUES ({', '.join('?' * len(LEDGER))})", values)


def widen(tx: Transaction, entry: Missing, now: int) -> None:
    """Enters what is missing of a range. The latest entry of the edge with the same reason grows up to its end,
    whatever lies between: nothing is missing there. So the ledger does not grow with the number of ranges."""
    same = "SELECT max(rowid) FROM ledger WHERE edge = ? AND stream = ? AND query = ? AND kind = ? AND reason = ?"
    (found,) = tx.execute(same, (entry.edge, entry.stream, entry.query, entry.kind, entry.reason)).fetchone()
    if found is None:
        enter(tx, entry, now)
        return
    grown = "UPDATE ledger SET end = ?, rows = rows + ?, time = ? WHERE rowid = ?"
    tx.execute(grown, (entry.end, entry.rows, now, found))


def _entry_before(tx: Transaction, entry: Missing) -> Any:
    same = (entry.edge, entry.first, entry.query, entry.stream, entry.kind, entry.ratio, entry.rule, entry.reason)
    return tx.execute(_SAME, same).fetchone()


def lost(query: str, edge: str, stream: str, first: int, end: int, why: str) -> Missing:
    """What a reader will never see, because retention has dropped it."""
    return Missing(query, edge, stream, "lost", first, end, end - first, reason=why)


def forget(tx: Transaction, query: str) -> None:
    """Removes what is known of a query that starts anew: its new answers lack nothing."""
    tx.execute("DELETE FROM ledger WHERE query = ?", (query,))


def trim(tx: Transaction, query: str, stream: str, oldest: int, since: int) -> None:
    """Removes entries that nobody can use any more: the tuples of their ranges are gone, and so are the answers of that
    time. The latest entry of an edge stays, because it says up to where the edge lacks something.

    Args:
        tx: The transaction: that of the collection.
        query: Whose answers lack the tuples.
        stream: What it reads.
        oldest: The oldest offset that the stream keeps.
        since: When the oldest answers that are kept were written, in microseconds.
    """
    tx.execute(_OLD, (query, stream, oldest, since))


def entries(rows: Callable[[str], Iterable[tuple[Any, ...]]]) -> list[Missing]:
    """All entries, oldest first."""

    def has(table: str, column: str) -> bool:
        return any(each[1] == column for each in rows(f"PRAGMA table_info({table})"))

    # A folder of an earlier version stays as it is if it is only read.
    known = f"SELECT {_COLUMNS} FROM ledger ORDER BY rowid"
    found = rows(known if has("ledger", "kind") else earlier(has("readers", "owner")))
    return [Missing(*row) for row in found]
