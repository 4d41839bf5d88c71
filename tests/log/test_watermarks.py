"""Watermarks: what the log knows of event time, and that it is true."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.log import Intake, Log, LogReader, Receipt, Retention
from freshet.model import ARRIVAL, Commit, Stream, parse_schema

SCHEMA = parse_schema("ts timestamp, v int")
EVENTS = Stream("s", SCHEMA, event_time="ts", lateness=2.0)


def rows(*arrivals: int) -> pa.Table:
    return pa.table({"v": list(range(len(arrivals))), ARRIVAL: pa.array(arrivals, pa.int64())})


def take(intake: Intake, *seconds: float, arrival: int = 1) -> Receipt:
    return intake.append([{"ts": at, "v": 0} for at in seconds], arrival)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path) as opened:
        opened.declare("s")
        yield opened


def test_a_watermark_holds_from_its_offset_on(log: Log, tmp_path: Path) -> None:
    assert log.watermark("s") is None
    log.append("s", rows(1, 2), watermark=10)
    log.append("s", rows(3), watermark=10)
    log.append("s", rows(4), watermark=30)
    expected = [None, None, 10, 10, 30]
    assert [log.watermark("s", offset) for offset in range(5)] == expected
    with LogReader(tmp_path) as reader:
        assert [reader.watermark("s", offset) for offset in range(5)] == expected
        log.append("s", rows(5), watermark=40)
        assert reader.watermark("s") == log.watermark("s") == 40
    log.close()
    with Log.open(tmp_path) as again:
        assert [again.watermark("s", offset) for offset in range(6)] == [*expected, 40]


def test_of_old_watermarks_the_one_that_still_holds_is_kept(log: Log, tmp_path: Path) -> None:
    log.declare("s", Retention(history_age=0, history_bytes=0))
    log.start_reader("r", "s")
    for time in range(5):
        log.append("s", rows(time, time), watermark=time)
    log.advance("r", "s", 5)
    log.collect()
    assert (log.oldest("s"), log.watermark("s", 4), log.watermark("s", 5), log.watermark("s")) == (4, 1, 1, 4)
    assert [beat.offset for beat in log.heartbeats("s")] == [4, 6, 8, 10]
    log.advance("r", "s", 10)
    log.collect()
    assert log.watermark("s") == 4
    log.close()
    with Log.open(tmp_path) as again:
        assert again.watermark("s") == 4
        assert len(again.heartbeats("s")) == 1


def test_a_commit_enters_watermarks_behind_what_it_writes(log: Log) -> None:
    log.declare("q")
    log.start_reader("r", "s")
    log.append("s", rows(1, 2))
    log.commit([Commit((("r", "s", 0, 2),), watermarks=(("q", 7),))])
    log.commit([Commit(watermarks=(("q", 5),)), Commit(watermarks=(("q", 9), ("s", 1)))])
    log.append("q", rows(1))
    log.commit([Commit(watermarks=(("q", 8),))])
    assert [(beat.offset, beat.time) for beat in log.heartbeats("q")] == [(0, 9)]
    assert log.watermark("s", 1) is None
    assert log.watermark("s", 2) == 1


def test_no_tuple_arrives_before_a_heartbeat_that_came_before_it(log: Log) -> None:
    intake = Intake(log, Stream("s", SCHEMA))
    take(intake, 0, arrival=10)
    assert intake.heartbeat(50)
    assert log.watermark("s", 0) is None
    assert log.watermark("s", 1) == 50
    take(intake, 0, arrival=30)  # a clock went back
    assert log.arrival("s", 1) == 50
    take(intake, 0, arrival=70)
    assert log.watermark("s") == 70


def test_event_time_stays_a_lateness_behind_the_newest(log: Log) -> None:
    intake = Intake(log, EVENTS)
    take(intake, 10, 9)
    assert log.watermark("s") == 8_000_000
    take(intake, 8, 7.9)
    assert log.meters().streams["s"].late == 1
    assert log.watermark("s", 2) == log.watermark("s") == 8_000_000


def test_a_heartbeat_makes_what_comes_later_late(log: Log) -> None:
    intake = Intake(log, EVENTS)
    assert intake.heartbeat(20_000_000)
    assert not intake.heartbeat(15_000_000)
    assert log.watermark("s") == 18_000_000
    assert take(intake, 17, 18).late == 1
    assert log.newest("s") == 20_000_000


def test_without_a_lateness_nothing_is_known(log: Log) -> None:
    intake = Intake(log, Stream("s", SCHEMA, event_time="ts"))
    take(intake, 10)
    assert not intake.heartbeat(20_000_000)
    assert log.watermark("s") is None


def test_a_greater_lateness_does_not_open_closed_windows_again(log: Log) -> None:
    take(Intake(log, EVENTS), 10)
    patient = Intake(log, Stream("s", SCHEMA, event_time="ts", lateness=100.0))
    assert take(patient, 7).late == 1
    assert take(patient, 8).late == 0
    assert log.watermark("s") == 8_000_000


def test_watermarks_of_another_clock_are_forgotten(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s", clock=ARRIVAL)
        take(Intake(log, Stream("s", SCHEMA)), 1, arrival=10**15)
        log.declare("s", clock=ARRIVAL)
        assert log.watermark("s") == 10**15
    with Log.open(tmp_path) as log:
        log.declare("s")
        log.declare("s", clock=ARRIVAL)
        assert log.watermark("s") == 10**15
        with LogReader(tmp_path) as reader:
            assert reader.watermark("s") == 10**15
            log.declare("s", clock="ts")
            assert log.watermark("s") is log.newest("s") is None
            assert take(Intake(log, EVENTS), 5).late == 0
            log.close()
            with Log.open(tmp_path) as again:
                assert again.watermark("s") == reader.watermark("s") == 3_000_000


def test_a_folder_of_version_1_is_taken_over_without_its_heartbeats(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        log.append("s", rows(1))
        log.heartbeat("s", 10)
    with sqlite3.connect(tmp_path / "store.db") as store:
        store.execute("DROP INDEX heartbeats_by_stream")
        store.execute("ALTER TABLE streams DROP COLUMN clock")
        store.execute("PRAGMA user_version = 1")
        store.execute("DELETE FROM meta WHERE key IN ('digest', 'commits')")
        store.execute("UPDATE segments SET file = 'append-1-0.arrows'")
    next((tmp_path / "segments").iterdir()).rename(tmp_path / "segments" / "append-1-0.arrows")
    (tmp_path / "tail").unlink()
    store.close()
    with LogReader(tmp_path) as reader:
        assert reader.end("s") == 1
    with Log.open(tmp_path) as log:
        assert log.watermark("s") is None
        log.declare("s", clock="ts")
        take(Intake(log, EVENTS), 5)
        assert log.watermark("s") == 3_000_000


STEPS = st.one_of(
    st.tuples(st.just("append"), st.lists(st.integers(-20, 60), max_size=4)),
    st.tuples(st.just("heartbeat"), st.integers(0, 60)),
    st.tuples(st.just("reopen"), st.integers(0, 10)),
    st.tuples(st.just("collect"), st.none()),
)


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(STEPS, max_size=12), event_time=st.booleans())
def test_watermarks_are_true_and_go_up(steps: list[tuple[str, object]], event_time: bool) -> None:
    """No tuple from an offset on is from before the watermark there, whatever came, was late, or was declared."""
    folder = Path(tempfile.mkdtemp())
    log, lateness = Log.open(folder), 2
    try:
        log.declare("s", Retention(history_age=0, history_bytes=0))
        log.start_reader("r", "s")
        for number, (kind, value) in enumerate(steps):
            stream = Stream("s", SCHEMA, *(("ts", "UTC", None, lateness) if event_time else ()))
            intake = Intake(log, stream)
            if kind == "append":
                assert isinstance(value, list)
                intake.append([{"ts": at, "v": 0} for at in value], (max(value, default=0) + number) * 10**6)
            elif kind == "heartbeat":
                assert isinstance(value, int)
                intake.heartbeat(value * 10**6)
            elif kind == "reopen":
                assert isinstance(value, int)
                log.close()
                log, lateness = Log.open(folder), value
            else:
                log.advance("r", "s", (log.cursor("r") or 0) + (log.cursor("r") != log.end("s")))
                log.collect()
        first, end = log.oldest("s"), log.end("s")
        marks = [log.watermark("s", offset) for offset in range(first, end + 1)]
        known = [mark for mark in marks if mark is not None]
        assert known == sorted(known)
        assert None not in marks[len(marks) - len(known) :]
        column = "ts" if event_time else ARRIVAL
        times = log.read("s", first, end)[column].cast(pa.int64()).to_pylist() if end > first else []
        for place, mark in enumerate(marks):
            assert mark is None or all(time >= mark for time in times[place:])
    finally:
        log.close()
        shutil.rmtree(folder)
