"""Key marks: how far the ordered key of a stream has come at its offsets, and which tuples came past it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from freshet.log import Intake, Log, LogReader, Retention
from freshet.log.store.digest import digest_of
from freshet.log.store.verify import verify
from freshet.model import KeyOrder, Stream, parse_schema
from freshet.model.join_budget import JoinBudget, RowCost

SCHEMA = parse_schema("k int, v int")
ORDERED = Stream("s", SCHEMA, order=KeyOrder("k", rows=1))
KEYS = (1, 3, 2, 5, 1, 6, 4, 9, 3)
MARKS = (None, None, 1, 3, 3, 5, 5, 6, 6, 9)
"""After each number of tuples: the greatest of all but the last."""
PAST = (4, 6, 8)


def take(intake: Intake, *keys: int) -> int:
    return intake.append([{"k": key, "v": 0} for key in keys], 1).past


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path) as opened:
        declare(opened)
        yield opened


def declare(log: Log, column: str | None = "k", retention: Retention | None = None) -> None:
    log.declare("s", retention, clock="__arrival", ordered=column)


def marks(log: Log | LogReader) -> list[int | None]:
    return [log.key_mark("s", offset) for offset in range(log.end("s") + 1)]


@pytest.mark.parametrize("sizes", [(9,), (1,) * 9, (2, 5, 2)], ids=str)
def test_marks_and_tuples_past_them_whatever_the_batches(sizes: tuple[int, ...], tmp_path: Path) -> None:
    done = 0
    for size in sizes:
        # A new process each time: what is known comes from the log.
        with Log.open(tmp_path) as log:
            declare(log)
            intake = Intake(log, ORDERED)
            assert take(intake, *KEYS[done : done + size]) == sum(done <= at < done + size for at in PAST)
            done += size
            assert log.past("s", 0, 99) == tuple(at for at in PAST if at < done)
            assert log.key_mark("s") == MARKS[done]
    assert not [check.damage for check in verify(tmp_path) if check.damage]


def test_another_process_sees_them(log: Log, tmp_path: Path) -> None:
    intake = Intake(log, ORDERED)
    with LogReader(tmp_path) as reader:
        for key in KEYS:
            take(intake, key)
            assert reader.key_mark("s") == log.key_mark("s")
            assert reader.past("s", 0, 99) == log.past("s", 0, 99)
        assert marks(reader) == marks(log) == list(MARKS)
        assert reader.past("s", 5, 8) == (6,)


def test_they_are_counted(log: Log) -> None:
    take(Intake(log, ORDERED), *KEYS)
    assert log.meters().streams["s"].past == len(PAST)


def test_retention_drops_marks_that_no_tuple_needs(log: Log, tmp_path: Path) -> None:
    declare(log, retention=Retention(history_age=0, history_bytes=0))
    log.start_reader("r", "s")
    intake = Intake(log, ORDERED)
    for key in KEYS:
        take(intake, key)
    log.advance("r", "s", 7)
    log.collect()
    assert log.past("s", 0, 99) == (8,)
    assert [log.key_mark("s", offset) for offset in (7, 8, 9)] == list(MARKS[7:])
    log.close()
    with Log.open(tmp_path) as again:
        declare(again)
        assert [again.key_mark("s", offset) for offset in (7, 8, 9)] == list(MARKS[7:])
        assert 8 in again.past("s", 7, 99)
        assert take(Intake(again, ORDERED), 9) == 1, "the mark is still known"


def test_another_ordered_column_begins_anew(log: Log) -> None:
    take(Intake(log, ORDERED), *KEYS)
    declare(log, "v")
    assert (log.key_mark("s"), log.past("s", 0, 99), log.disorder("s")) == (None, (), None)
    assert take(Intake(log, Stream("s", SCHEMA, order=KeyOrder("v", rows=1))), 1, 1) == 0


def test_a_failed_append_teaches_nothing(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    intake = Intake(log, ORDERED)
    take(intake, 1, 3)
    monkeypatch.setattr(log, "append", lambda *_, **__: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(OSError, match="no"):
        take(intake, 100, 200)
    monkeypatch.undo()
    assert take(intake, 2, 5) == 0, "2 is above the mark that holds without the lost rows"


def test_a_heartbeat_moves_the_mark_of_a_key_that_is_the_event_time(log: Log) -> None:
    schema = parse_schema("ts timestamp")
    stream = Stream("t", schema, event_time="ts", lateness=2.0, order=KeyOrder("ts", distance=2_000_000))
    log.declare("t", clock="ts", ordered="ts")
    intake = Intake(log, stream)
    intake.append([{"ts": 10.0}], 1)
    assert intake.heartbeat(20_000_000)
    assert log.key_mark("t") == 18_000_000 - 1


def two(log: Log) -> tuple[Intake, Intake]:
    """Two streams of a join that may remember four rows."""
    for name in "st":
        log.declare(name, Retention(history_age=0, history_bytes=0), clock="__arrival", ordered="k")
    log.give_memory(JoinBudget("q.join", ("s", "t"), (RowCost(16_384), RowCost(16_384)), 65_536))
    return Intake(log, ORDERED), Intake(log, replace(ORDERED, name="t"))


def test_a_join_with_a_bound_raises_its_marks(log: Log, tmp_path: Path) -> None:
    first, second = two(log)
    take(first, 1, 2, 3, 4, 5, 6)
    # The fifth row is one too many, and an eighth less than four rows are three.
    assert log.levels("s", "q.join") == [(5, 2)]
    level = log.levels("t", "q.join")[-1][1]
    take(second, level, 1, level + 1)
    assert log.let_go("t", 0, 9, "q.join") == (0, 1)
    assert log.past("t", 0, 9) == (), "the stream itself has lost nothing"
    assert (log.key_mark("t", 0), log.key_mark("t", 0, "q.join")) == (None, level)
    with LogReader(tmp_path) as reader:
        assert reader.levels("t", "q.join") == log.levels("t", "q.join")
        assert reader.let_go("t", 0, 9, "q.join") == (0, 1)
    assert not [check.damage for check in verify(tmp_path) if check.damage]


KEPT = JoinBudget("q.join", ("s", "t"), (RowCost(16_384), RowCost(16_384)), 65_536)


def test_what_came_before_a_bound_is_reckoned_once(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        for name in "st":
            log.declare(name, clock="__arrival", ordered="k")
        first, second = Intake(log, ORDERED), Intake(log, replace(ORDERED, name="t"))
        for key in (1, 2, 3, 4, 5, 6):
            take(first, key)
        take(second, 1, 9)
        log.give_memory(KEPT, {"s": 0, "t": 0})
        levels = [(5, 2), (6, 4)]
        assert log.levels("s", "q.join")[:2] == levels, "as if the bound had been there"
        assert log.let_go("t", 0, 9, "q.join") == (0,)
        known = log.levels("s", "q.join")
    with Log.open(tmp_path) as log:
        log.give_memory(KEPT, {"s": 0, "t": 0})
        assert log.levels("s", "q.join") == known
        assert log.let_go("t", 0, 9, "q.join") == (0,)
    assert not [check.damage for check in verify(tmp_path) if check.damage]


def test_what_came_while_a_join_was_out_is_reckoned_when_it_is_back(log: Log) -> None:
    first, second = two(log)
    take(first, 1, 2)
    log.take_memory("q.join")
    take(first, *range(3, 10))
    assert log.levels("s", "q.join") == []
    log.give_memory(KEPT, {"s": 0, "t": 0})
    assert log.let_go("t", 0, 9, "q.join") == (), "nobody has said that it was out, and the bound holds at the end"
    [(at, _)] = log.levels("s", "q.join")
    assert at == 9
    log.take_memory("q.join")
    log.lapse("q.join")
    take(first, *range(10, 20))
    log.give_memory(KEPT, {"s": 0, "t": 0})
    assert [at for at, _ in log.levels("s", "q.join")][1] < 19, "the level holds from inside of what came meanwhile"
    take(second, 5)
    assert log.let_go("t", 0, 9, "q.join") == (0,)


def test_retention_keeps_the_level_that_holds(log: Log, tmp_path: Path) -> None:
    first, _ = two(log)
    log.start_reader("r", "s")
    for key in range(1, 40):
        take(first, key)
    assert [at for at, _ in log.levels("s", "q.join")][:2] == [5, 7]
    holds = log.key_mark("s", 30, "q.join")
    log.advance("r", "s", 30)
    log.collect()
    assert [at for at, _ in log.levels("s", "q.join")][:2] == [29, 31]
    log.close()
    with Log.open(tmp_path) as again:
        assert again.key_mark("s", 30, "q.join") == holds
        assert again.key_mark("s", 39, "q.join") == log.key_mark("s", 39, "q.join")
        known = again.levels("s", "q.join")
        again.give_memory(KEPT, {"s": 30})
        assert again.levels("s", "q.join") == known, "all of it was reckoned when it came"
        again.forget_levels("q.join")
        assert again.levels("s", "q.join") == again.levels("t", "q.join") == []


def test_a_folder_of_format_9_gets_levels(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        declare(log)
        take(Intake(log, ORDERED), *KEYS)
    with sqlite3.connect(tmp_path / "store.db") as store:
        store.execute("ALTER TABLE key_marks DROP COLUMN joined")
        store.execute("UPDATE meta SET value = ? WHERE key = 'digest'", (digest_of(store),))
        store.execute("PRAGMA user_version = 9")
    store.close()
    with LogReader(tmp_path) as reader:
        assert (reader.key_mark("s"), reader.past("s", 0, 9)) == (MARKS[-1], PAST)
    with Log.open(tmp_path) as log:
        first, _ = two(log)
        assert log.key_mark("s") == MARKS[-1]
        take(first, 20, 21, 22, 23, 24)
        assert log.levels("s", "q.join")
    assert not [check.damage for check in verify(tmp_path) if check.damage]


def test_a_folder_of_format_8_gets_key_marks(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s", clock="__arrival")
        Intake(log, Stream("s", SCHEMA)).append([{"k": 1, "v": 1}], 1)
    with sqlite3.connect(tmp_path / "store.db") as store:
        store.execute("DROP TABLE key_marks")
        for column in ("ordered", "disorder", "past"):
            store.execute(f"ALTER TABLE streams DROP COLUMN {column}")
        store.execute("UPDATE meta SET value = ? WHERE key = 'digest'", (digest_of(store),))
        store.execute("PRAGMA user_version = 8")
    store.close()
    with LogReader(tmp_path) as reader:
        assert (reader.key_mark("s"), reader.past("s", 0, 9)) == (None, ())
    with Log.open(tmp_path) as log:
        declare(log)
        assert take(Intake(log, ORDERED), 5, 7, 4) == 1
        assert log.read("s", 0, 1)["k"].to_pylist() == [1]
    assert not [check.damage for check in verify(tmp_path) if check.damage]
