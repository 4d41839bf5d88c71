import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from freshet.log import Intake, Limits, Log, Retention
from freshet.model import ARRIVAL, Stream, UserError, parse_schema
from freshet.sources import Feeder, SparkOptions, SparkSource, create

NUMBERS = Stream("numbers", parse_schema("value bigint, timestamp timestamp"))
EVENTS = Stream("events", parse_schema("ts timestamp, v int"), event_time="ts", lateness=10.0)


def make(stream: Stream, **options) -> SparkSource:
    return SparkSource(SparkOptions.model_validate(options), stream)


def until(condition, timeout: float = 600.0) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def feed(log: Log, source: SparkSource, stream: Stream, until_state: str = "exhausted") -> Feeder:
    feeder = Feeder(source, Intake(log, stream), log, stream.name)
    feeder.start()
    until(lambda: feeder.status.state in (until_state, "failed"))
    assert feeder.status.state == until_state, feeder.status.reason
    feeder.stop()
    return feeder


@pytest.fixture
def log(tmp_path):
    with Log.open(tmp_path / "state", limits=Limits(min_free_bytes=0)) as log:
        log.declare("numbers", Retention())
        log.declare("events", Retention(), clock="ts")
        yield log


def put(folder: Path, name: str, *rows: Mapping[str, object]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f".{name}").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / f".{name}").rename(folder / name)


@pytest.mark.spark
def test_the_rate_source_goes_on_over_restarts(spark, log):
    options = {"format": "rate", "options": {"rowsPerSecond": 50, "numPartitions": 2}, "interval": "100 ms"}
    for enough in (60, 160):
        feeder = Feeder(make(NUMBERS, **options), Intake(log, NUMBERS), log, "numbers", heartbeat=0.01)
        feeder.start()
        until(lambda: log.end("numbers") >= enough or feeder.status.state == "failed")  # noqa: B023
        assert feeder.stop(120)
        assert feeder.status.reason is None
    table = log.read("numbers", 0, log.end("numbers"))
    assert sorted(table["value"].to_pylist()) == list(range(table.num_rows))
    arrivals = table[ARRIVAL].to_pylist()
    assert arrivals == sorted(arrivals)


@pytest.mark.spark
def test_rows_are_cast_judged_and_set_aside(spark, log, tmp_path):
    files = tmp_path / "in"
    put(files, "1.json", {"ts": "2024-01-01 00:01:00", "n": "7"}, {"ts": "soon", "n": "8"}, {"ts": None, "n": "x"})
    options = {
        "format": "json",
        "options": {"path": str(files), "maxFilesPerTrigger": 1},
        "schema": "ts string, n string",
        "columns": {"v": "n"},
        "follow": False,
    }
    status = feed(log, make(EVENTS, **options), EVENTS).status
    assert (status.rows, status.dead, status.late) == (1, 2, 0)
    put(files, "2.json", {"ts": "2024-01-01 00:00:49", "n": 1}, {"ts": "2024-01-01 00:00:51", "n": "many"})
    status = feed(log, make(EVENTS, **options), EVENTS).status
    assert (status.rows, status.dead, status.late) == (1, 0, 1)
    table = log.read("events", 0, 2)
    assert table["v"].to_pylist() == [7, None]
    dead = [json.loads(line) for line in (tmp_path / "state" / "dead" / "events.jsonl").read_text().splitlines()]
    assert [letter["row"] for letter in dead] == [{"ts": "soon", "n": "8"}, {"n": "x"}]
    late = json.loads((tmp_path / "state" / "late" / "events.jsonl").read_text())
    assert late["reason"] == "11 s behind the newest event time; the lateness is 10 s"
    assert late["row"]["v"] == 1


class Crashing(SparkSource):
    """Dies when the log has a batch and Spark does not know it yet."""

    def _handle(self, frame, batch):
        super()._handle(frame, batch)
        raise RuntimeError("crash")


@pytest.mark.spark
def test_a_batch_that_the_log_has_already_is_left_out(spark, log, tmp_path):
    files = tmp_path / "in"
    options = {"format": "json", "options": {"path": str(files)}, "schema": "value long, timestamp timestamp",
               "follow": False}  # fmt: skip
    put(files, "1.json", *({"value": v} for v in range(10)))
    crashing = Crashing(SparkOptions.model_validate(options), NUMBERS)
    feeder = Feeder(crashing, Intake(log, NUMBERS), log, "numbers")
    feeder.start()
    until(lambda: feeder.status.state == "failed")
    feeder.stop()
    assert feeder.status.reason == "the streaming query of stream numbers failed: RuntimeError: crash"
    assert log.end("numbers") == 10
    checkpoint = tmp_path / "state" / "sources" / "numbers"
    assert (checkpoint / "offsets" / "0").exists()
    assert not (checkpoint / "commits" / "0").exists(), "Spark must not know that the batch is done"
    put(files, "2.json", *({"value": v} for v in range(10, 15)))
    feed(log, make(NUMBERS, **options), NUMBERS)
    assert sorted(log.read("numbers", 0, log.end("numbers"))["value"].to_pylist()) == list(range(15))


@pytest.mark.spark
def test_progress_that_is_lost_is_told(spark, log, tmp_path):
    files = tmp_path / "in"
    options = {"format": "json", "options": {"path": str(files)}, "schema": "value long, timestamp timestamp",
               "follow": False}  # fmt: skip
    put(files, "1.json", {"value": 1})
    feed(log, make(NUMBERS, **options), NUMBERS)
    shutil.rmtree(tmp_path / "state" / "sources")
    feeder = feed(log, make(NUMBERS, **options), NUMBERS, until_state="failed")
    assert "is not the progress that stream numbers has come from" in str(feeder.status.reason)
    assert log.end("numbers") == 1


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "rated"}, "Spark refuses it: .*rated"),
        ({"format": "rate", "columns": {"value": "valu"}}, "Spark refuses it: .*valu"),
    ],
)
def test_what_spark_refuses_is_told(spark, log, options, message):
    feeder = feed(log, make(NUMBERS, **options), NUMBERS, until_state="failed")
    with pytest.raises(UserError, match=message):
        raise UserError(str(feeder.status.reason))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "format: field required"),
        ({"format": "rate", "columns": {"v": "1"}}, "columns.v is not a column of stream numbers"),
        ({"format": "rate", "schema": "a nonsense"}, "schema 'a nonsense' is not Spark DDL"),
        ({"format": "rate", "interval": 0}, "interval: "),
        ({"format": "rate", "option": {}}, "option is not a known key"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(UserError, match=f"stream numbers: source spark: {message}"):
        create("spark", options, NUMBERS)
