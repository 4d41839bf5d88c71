import json

import numpy as np
import pyarrow as pa
import pytest

from freshet.log import Intake, Limits, Log, SegmentWriter
from freshet.model import ARRIVAL, FreshetError, SegmentFile, Stream, parse_schema

STREAM = Stream("s", parse_schema("ts timestamp, v int"), event_time="ts", lateness=10.0)


@pytest.fixture
def log(tmp_path):
    with Log.open(tmp_path / "state", limits=Limits(min_free_bytes=0)) as log:
        log.declare("s", clock="ts")
        yield log


def written(log: Log, name: str, arrival: int, *values: int) -> SegmentFile:
    table = pa.Table.from_arrays(
        [
            pa.array([value * 1_000_000 for value in values]).cast(pa.timestamp("us", tz="UTC")),
            pa.array(values, pa.int32()),
            pa.array(np.full(len(values), arrival)),
        ],
        schema=STREAM.schema.append(pa.field(ARRIVAL, pa.int64())),
    )
    writer = SegmentWriter(log.folder, name)
    writer.add("s", table)
    return writer.finish()


def adopt(log: Log, files: list[SegmentFile], newest: int | None, batch: int, **aside):
    aside = {"dead": [], "late": []} | aside
    return Intake(log, STREAM).adopt(files, newest=newest, source_position={"batch": batch}, **aside)


def test_files_join_the_log_with_the_position_and_what_was_set_aside(log, tmp_path):
    files = [written(log, "a", 5, 100, 101), written(log, "b", 5, 102)]
    dead = [{"arrival": 5, "reason": "bad", "row": {}}]
    receipt = adopt(log, files, 102_000_000, 7, dead=dead)
    assert (receipt.first, receipt.end, receipt.dead, receipt.late) == (0, 3, 1, 0)
    assert log.read("s", 0, 3)["v"].to_pylist() == [100, 101, 102]
    assert log.source_position("s") == {"batch": 7}
    assert (log.newest("s"), log.watermark("s")) == (102_000_000, 92_000_000)
    assert Intake(log, STREAM).bar == 92_000_000
    assert json.loads((tmp_path / "state" / "dead" / "s.jsonl").read_text())["reason"] == "bad"
    with pytest.raises(FreshetError, match="is in the log already"):
        adopt(log, files, None, 8)
    assert (log.end("s"), log.source_position("s")) == (3, {"batch": 7})
    assert adopt(log, [], None, 9).end == 3
    assert log.source_position("s") == {"batch": 9}
    assert log.newest("s") == 102_000_000


def test_arrivals_never_go_back(log):
    adopt(log, [written(log, "a", 50, 1)], 1_000_000, 1)
    adopt(log, [written(log, "b", 20, 2, 3)], 3_000_000, 2)
    assert log.read("s", 0, 3)[ARRIVAL].to_pylist() == [50, 50, 50]
    assert log.read("s", 0, 3)["v"].to_pylist() == [1, 2, 3]
    assert log.last_arrival("s") == 50


def test_a_file_that_is_not_whole_is_refused(log):
    file = written(log, "a", 5, 1)
    (log.folder / file.name).write_bytes(b"half")
    with pytest.raises(FreshetError, match="has 4 bytes"):
        adopt(log, [file], 1, 1)
    assert log.source_position("s") is None


def test_it_survives_opening_the_log_again(tmp_path):
    with Log.open(tmp_path / "state") as log:
        log.declare("s", clock="ts")
        adopt(log, [written(log, "a", 5, 1, 2)], 2_000_000, 3)
    with Log.open(tmp_path / "state") as log:
        assert log.read("s", 0, 2)["v"].to_pylist() == [1, 2]
        assert (log.source_position("s"), log.newest("s")) == ({"batch": 3}, 2_000_000)
