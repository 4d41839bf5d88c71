"""How far event time had come, as calibration replays it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from freshet.app.running.calibrating import event_time
from freshet.log import Intake, Log, LogReader
from freshet.model import Stream, parse_schema

SCHEMA = parse_schema("ts timestamp, k int")


def rows(*seconds: float) -> pa.Table:
    moments = pa.array([round(each * 1e6) for each in seconds], pa.timestamp("us", "UTC"))
    return pa.table({"ts": moments, "k": pa.array(range(len(seconds)), pa.int32())})


def test_rows_and_heartbeats_bring_event_time_on(tmp_path: Path) -> None:
    stream = Stream("s", SCHEMA, event_time="ts", lateness=2.0)
    with Log.open(tmp_path) as log:
        log.declare("s", clock="ts")
        intake = Intake(log, stream)
        intake.append(rows(10.0, 11.0), 1)
        intake.append(rows(12.0), 2)
        intake.heartbeat(30_000_000)
        intake.append(rows(31.0), 3)
    with LogReader(tmp_path) as log:
        assert [event_time(log, stream, offset) for offset in (2, 3, 4)] == [11.0, 30.0, 31.0]
        assert event_time(log, Stream("s", SCHEMA), 3) is None, "the arrival passes by itself"
