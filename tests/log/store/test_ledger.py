"""The ledger: one table for everything that answers lack, in the commit of what it is about."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.log.rows import rows

from freshet.log import CursorMoved, Log, LogReader, QueryRecord, Rearrangement, Retention
from freshet.log.store.digest import digest_of
from freshet.model import Commit, Missing


def thinned(first: int, end: int, ratio: float = 0.5, missing: int = 1) -> Missing:
    return Missing("q", "q.filter_1", "s", "thinned", first, end, missing, ratio, "hash 1", "overload")


def opened(folder: Path) -> Log:
    log = Log.open(folder)
    log.declare("s")
    log.start_reader("q.filter_1", "s", owner="q")
    if log.end("s") == 0:
        log.append("s", rows(*range(30)))
    return log


def move(first: int, end: int, *missing: Missing) -> Commit:
    return Commit(cursors=(("q.filter_1", "s", first, end),), missing=missing)


def test_an_entry_is_in_the_commit_of_the_unit_or_nowhere(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.commit([move(0, 10, thinned(0, 10))])
        with pytest.raises(CursorMoved):
            log.commit([move(0, 10, thinned(0, 10))])
        assert log.ledger() == [thinned(0, 10)]
    with opened(tmp_path) as log:
        assert (log.ledger(), log.cursor("q.filter_1")) == ([thinned(0, 10)], 10)


def test_neighbours_of_one_rule_are_one_entry(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.commit([move(0, 5, thinned(0, 5)), move(5, 10, thinned(5, 10))])
        log.commit([move(10, 12, thinned(10, 12, missing=2))])
        log.commit([move(12, 14, thinned(12, 14, ratio=0.25))])
        log.commit([move(14, 16)])
        log.commit([move(16, 18, thinned(16, 18, ratio=0.25))])
        found = log.ledger()
        assert found == [
            thinned(0, 12, missing=4), thinned(12, 14, ratio=0.25), thinned(16, 18, ratio=0.25),
        ]  # fmt: skip
        assert all(0 < entry.since <= entry.time for entry in found)
        with LogReader(tmp_path) as reader:
            assert reader.ledger() == found


def test_a_query_that_starts_anew_lacks_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.remember("q", QueryRecord("1f"))
        log.commit([move(0, 5, thinned(0, 5))])
        log.remember("q", QueryRecord("2f"))
        assert len(log.ledger()) == 1
        log.rearrange(Rearrangement(queries={"q": None}))
        assert log.ledger() == []


def test_entries_go_when_the_tuples_and_the_answers_are_gone_but_for_the_last_of_an_edge(tmp_path: Path) -> None:
    moment = 1000.0
    with Log.open(tmp_path, now=lambda: moment) as log:
        for name, age in (("s", 10.0), ("q", 70.0)):
            log.declare(name, Retention(history_age=age))
        log.start_reader("q.filter_1", "s", owner="q")
        for first in range(0, 30, 10):
            log.append("s", rows(*range(first, first + 10)))
            log.commit([move(first, first + 10, thinned(first, first + 10, ratio=0.1 + first / 100))])
            log.append("q", rows(first))
            moment += 20.0
        assert len(log.ledger()) == 3
        log.collect()
        assert log.oldest("s") == 30
        assert [entry.first for entry in log.ledger()] == [0, 10, 20], "answers of that time are kept"
        moment += 15.0
        log.collect()
        assert log.oldest("q") == 1
        assert [entry.first for entry in log.ledger()] == [10, 20]
        moment += 1000.0
        log.collect()
        assert [entry.first for entry in log.ledger()] == [20], "it says up to where the edge lacks something"
    with Log.open(tmp_path) as log:
        assert [entry.first for entry in log.ledger()] == [20]


def test_the_ledger_of_format_6_is_taken_over(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("DROP TABLE ledger")
        connection.execute(
            "CREATE TABLE ledger (reader TEXT NOT NULL, stream TEXT NOT NULL, first INTEGER NOT NULL, "
            "end INTEGER NOT NULL, why TEXT NOT NULL, time INTEGER NOT NULL)"
        )
        connection.execute("INSERT INTO ledger VALUES ('q.filter_1', 's', 2, 7, 'quarantined', 123)")
        connection.execute("INSERT INTO ledger VALUES ('gone', 's', 0, 1, 'parked', 456)")
        connection.execute("UPDATE meta SET value = ? WHERE key = 'digest'", (digest_of(connection),))
        connection.execute("PRAGMA user_version = 6")
    expected = [
        Missing("q", "q.filter_1", "s", "lost", 2, 7, 5, reason="quarantined"),
        Missing("", "gone", "s", "lost", 0, 1, 1, reason="parked"),
    ]
    with LogReader(tmp_path) as reader:
        assert reader.ledger() == expected, "it can be read as it is"
    with opened(tmp_path) as log:
        assert log.ledger() == expected
        assert [entry.time for entry in log.ledger()] == [123, 456]
        log.commit([move(0, 5, thinned(0, 5))])
    with opened(tmp_path) as log:
        assert log.ledger() == [*expected, thinned(0, 5)]
