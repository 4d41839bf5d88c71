"""What event time it is while nothing comes: never the wall clock's, unless the source's own follows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from freshet.log import Intake, Log
from freshet.model import FreshetError, Stream, parse_schema
from freshet.sources import Feeder, PushSource, create
from freshet.sources.source import END_OF_TIME, EventClock

STREAM = Stream("s", parse_schema("ts timestamp, v int"), event_time="ts", lateness=5)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "state") as opened:
        opened.declare("s")
        yield opened


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def feeding(log: Log, kind: str, options: dict[str, Any], stream: Stream = STREAM) -> Feeder:
    feeder = Feeder(create(kind, options, stream), Intake(log, stream), log, "s", heartbeat=0.01)
    feeder.start()
    return feeder


def test_the_clock_of_a_generator_is_that_of_its_event_times() -> None:
    source = create("generator", {"rate": 1}, STREAM)
    assert isinstance(source, EventClock)
    assert source.event_clock(1000.0) is None  # it has not begun
    source.poll(1000.0)
    assert source.event_clock(1007.0) == 1007.0
    began = create("generator", {"rate": 1, "columns": {"ts": {"kind": "event_time", "start": "1970-01-02"}}}, STREAM)
    began.poll(1000.0)
    assert isinstance(began, EventClock)
    assert began.event_clock(1007.0) == 86_407.0
    drawn = create(
        "generator", {"rate": 1, "columns": {"ts": {"kind": "constant", "value": "2024-01-01T00:00:00Z"}}}, STREAM
    )
    drawn.poll(1000.0)
    assert isinstance(drawn, EventClock)
    assert drawn.event_clock(1007.0) is None


def test_a_trace_is_at_its_own_time_and_at_last_at_the_end_of_time(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("ts,v\n100,1\n110,2\n")
    options = {"path": path, "time": "ts", "speed": 2.0}
    source = create("trace", options, STREAM)
    assert isinstance(source, EventClock)
    source.poll(1000.0)
    assert source.event_clock(1003.0) == 106.0
    source.poll(1005.0)
    assert source.event_clock(1005.0) == END_OF_TIME
    shifted = create("trace", options | {"shift": True}, STREAM)
    shifted.poll(1000.0)
    assert isinstance(shifted, EventClock)
    assert shifted.event_clock(1003.0) == 1006.0
    wall = Stream("s", parse_schema("ts timestamp_ntz, v int"), "ts", time_zone="America/New_York", lateness=5)
    local = create("trace", options, wall)
    local.poll(1000.0)
    assert isinstance(local, EventClock)
    assert local.event_clock(1003.0) == 106.0 - 5 * 3600


def _play_to_its_end(log: Log, path: Path) -> None:
    feeder = feeding(log, "trace", {"path": path, "time": "ts", "speed": "max"})
    until(lambda: feeder.status.state == "exhausted" and log.newest("s") != 100_000_000)
    feeder.stop()


def test_a_trace_at_its_end_closes_all_windows_once(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("ts,v\n100,1\n")
    _play_to_its_end(log, path)
    _play_to_its_end(log, path)
    assert log.watermark("s", 0) is None
    assert log.watermark("s", 1) == round((END_OF_TIME - 5) * 1e6)
    assert log.meters().streams["s"].heartbeats == 1


def test_the_wall_clock_is_not_event_time(log: Log) -> None:
    feeder = feeding(log, "push", {})
    source = feeder._source
    assert isinstance(source, PushSource)
    source.push([{"ts": 100, "v": 1}])
    time.sleep(0.1)
    assert log.watermark("s") == 95_000_000
    source.heartbeat(200)
    assert log.watermark("s") == 195_000_000
    source.heartbeat(datetime(1970, 1, 1, 0, 10, tzinfo=UTC))
    assert log.watermark("s") == 595_000_000
    assert source.push([{"ts": 500, "v": 1}]).late == 1
    feeder.stop()
    assert feeder.status.heartbeats == 2
    with pytest.raises(FreshetError, match="not running"):
        source.heartbeat(300)


def test_who_hears_that_a_trace_has_ended_finds_its_windows_closed(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("ts,v\n100,1\n")
    options = {"path": path, "time": "ts", "speed": "max"}
    feeder = Feeder(create("trace", options, STREAM), Intake(log, STREAM), log, "s", heartbeat=3600.0)
    feeder.start()
    until(lambda: feeder.status.state == "exhausted")
    assert feeder.status.heartbeats == 1
    assert log.newest("s") == END_OF_TIME * 1e6
    feeder.stop()
