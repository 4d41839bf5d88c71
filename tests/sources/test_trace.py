import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.log import Intake, Log
from freshet.model import Stream, UserError, parse_schema
from freshet.sources import Trace, TraceOptions, create

DATA = Path(__file__).parents[3] / "shared" / "data"
STREAM = Stream("s", parse_schema("ts timestamp, k string, v int"), event_time="ts")


def trace(path: Path, stream: Stream = STREAM, **options) -> Trace:
    return Trace(TraceOptions.model_validate({"path": path, "time": "ts"} | options), stream)


def play(source: Trace, start: float = 1000.0, step: float = 1.0):
    """All batches, polling every ``step`` seconds."""
    batches, now = [], start
    while source.next_due() is not None:
        batch = source.poll(now)
        if batch is None:
            now += step
        else:
            assert batch.arrivals[-1] <= now * 1e6 + 1
            batches.append(batch)
    return batches


def rows(batches) -> list[Any]:
    return [row for b in batches for row in (b.rows.to_pylist() if isinstance(b.rows, pa.Table) else b.rows)]


def arrivals(batches) -> np.ndarray:
    return np.concatenate([batch.arrivals for batch in batches])


def write(path: Path, text: str) -> Path:
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_rows_come_at_their_distance_at_the_chosen_speed(tmp_path, name):
    path = write(tmp_path / name, "ts,k,v\n100.0,a,1\n101.5,b,2\n110.0,,3\n")
    batches = play(trace(path, speed=10), step=0.01)
    assert arrivals(batches).tolist() == [1000_000_000, 1000_150_000, 1001_000_000]
    found = rows(batches)
    assert [row["ts"].timestamp() for row in found] == [100.0, 101.5, 110.0]
    assert [(row["k"], row["v"]) for row in found] == [("a", "1"), ("b", "2"), (None, "3")]


def test_at_full_speed_everything_is_due_now(tmp_path):
    path = write(tmp_path / "t.csv", "ts,k,v\n" + "".join(f"{i},a,{i}\n" for i in range(25)))
    batches = play(trace(path, speed="max", max_rows=10))
    assert [len(batch.arrivals) for batch in batches] == [10, 10, 5]
    assert [batch.more for batch in batches] == [True, True, False]
    assert set(arrivals(batches).tolist()) == {1000_000_000}


def test_in_file_order_no_row_overtakes_another_and_event_times_stay(tmp_path):
    path = write(tmp_path / "t.csv", "ts,k,v\n10,a,1\n13,b,2\n11,c,3\n14,d,4\n")
    batches = play(trace(path), step=0.5)
    assert ((arrivals(batches) / 1e6) - 1000).tolist() == [0, 3, 3, 4]
    assert [row["ts"].timestamp() for row in rows(batches)] == [10, 13, 11, 14]


def test_in_time_order_equal_times_stay_in_file_order(tmp_path):
    path = write(tmp_path / "t.csv", "ts,k,v\n12,a,1\n10,b,2\n12,c,3\n10,d,4\n")
    batches = play(trace(path, order="time"))
    assert [row["k"] for row in rows(batches)] == ["b", "d", "a", "c"]
    assert ((arrivals(batches) / 1e6) - 1000).tolist() == [0, 0, 2, 2]


@pytest.mark.parametrize(
    ("unit", "values"),
    [
        ("ms", ["1500", "2500"]),
        ("us", ["1500000", "2500000"]),
        ("ns", ["1500000000", "2500000000"]),
        ("iso", ["1970-01-01T00:00:01.5Z", "1970-01-01T00:00:02.5+00:00"]),
        ("iso", ["1970-01-01 01:00:01.5", "1970-01-01 01:00:02.5"]),
    ],
)
def test_units(tmp_path, unit, values):
    zone = "UTC" if "01:00" not in values[0] else "Europe/Paris"
    stream = Stream("s", STREAM.schema, event_time="ts", time_zone=zone)
    path = write(tmp_path / "t.csv", "ts,k,v\n" + "".join(f"{value},a,1\n" for value in values))
    assert [row["ts"].timestamp() for row in rows(play(trace(path, stream, unit=unit)))] == [1.5, 2.5]


def test_parquet_with_its_own_types_and_names(tmp_path):
    table = pa.table(
        {
            "when": pa.array(np.arange(50_000) * 1_000_000, pa.timestamp("ns", tz="UTC")),
            "key": pa.array(["a"] * 50_000).dictionary_encode(),
            "v": np.arange(50_000),
        }
    )
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(table, path, row_group_size=7000)
    options: dict[str, Any] = {"time": "when", "columns": {"k": "key"}}
    batches = play(trace(path, **options), step=5.0)
    assert [row["v"] for row in rows(batches)] == list(range(50_000))
    middle = trace(path, **options)
    middle.restore(batches[2].position)
    assert rows(play(middle)) == rows(batches[3:])


def test_shift_moves_event_times_to_the_present_and_survives_a_restart(tmp_path):
    path = write(tmp_path / "t.csv", "ts,k,v\n10,a,1\n12,b,2\n15,c,3\n")
    first = trace(path, shift=True, max_rows=2)
    batches = play(first, start=5000.0)[:1]
    again = trace(path, shift=True)
    again.restore(json.loads(json.dumps(batches[0].position)))
    batches += play(again, start=9000.0)
    assert [row["ts"].timestamp() for row in rows(batches)] == [5000, 5002, 5005]
    assert (arrivals(batches) / 1e6).tolist() == [5000, 9002, 9005]


MALFORMED = (
    "ts,k,v\n"
    "1,a,1\n"
    "2,b\n"  # a column short
    'x,"c",3\n'  # no time
    '3,"d,4\n'  # an open quote, which must not swallow the file
    "\n"
    "4,e,five\n"  # no number
    "5,f,6,7\n"  # a column too many
    '6,"g, ""h""",7\r\n'
)


def test_malformed_rows_go_to_the_dead_letters_and_kill_nothing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(MALFORMED.encode() + b"7,\xff\xfe,8\n8,z,9\n")
    with Log.open(tmp_path / "state") as log:
        log.declare("s")
        intake = Intake(log, STREAM)
        dead = 0
        for batch in play(trace(path, max_rows=3)):
            dead += intake.append(batch.rows, batch.arrivals, batch.position).dead
        found = log.read("s", 0, log.end("s")).to_pylist()
        letters = [json.loads(line) for line in (tmp_path / "state" / "dead" / "s.jsonl").read_text().splitlines()]
    assert [(row["k"], row["v"]) for row in found] == [("a", 1), ('g, "h"', 7), ("z", 9)]
    assert dead == len(letters) == 6
    reasons = [letter["reason"] for letter in letters]
    assert reasons[0] == "2 fields, the header has 3"
    assert reasons[2] == "not a line of CSV: unexpected end of data"
    assert reasons[4:] == ["4 fields, the header has 3", "not UTF-8 text"]
    texts = [letter["row"] for letter in letters]
    assert texts[0] == "2,b"
    assert texts[1]["ts"] == "x"
    assert texts[2] == '3,"d,4'
    assert texts[3]["v"] == "five"
    assert texts[4:] == ["5,f,6,7", "7,\\xff\\xfe,8"]
    assert all(letter["reason"] for letter in letters)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_restart_at_any_row_goes_on_with_the_next(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("trace") / "t.csv"
    lines = data.draw(st.lists(st.sampled_from(["1,a,1", "5,b,2", "3,c,3", "oops", '"', "x,d,4", ""]), max_size=30))
    write(path, "ts,k,v\n0,a,0\n" + "".join(line + "\n" for line in lines))
    order = data.draw(st.sampled_from(["file", "time"]))
    size = data.draw(st.integers(1, 5))
    batches = play(trace(path, order=order, max_rows=size))
    assert sum(len(batch.arrivals) for batch in batches) == 1 + sum(line != "" for line in lines)
    cut = data.draw(st.integers(1, len(batches)))
    again = trace(path, order=order, max_rows=size)
    again.restore(json.loads(json.dumps(batches[cut - 1].position)))
    assert rows(play(again)) == rows(batches[cut:])


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("ts,k,v\n1,a,1\n", {"time": "when"}, "no column 'when' to be the time"),
        ("ts,k\n1,a\n", {}, "no column 'v' .*set columns.v"),
        ("ts,k,v\n1,a,1\n", {"columns": {"w": "v"}}, "columns.w is not a column"),
        ("ts,k,v\n1,a,1\n", {"speed": 0}, "speed"),
        ("ts,k,v\n1,a,1\n", {"unit": "days"}, "unit"),
        ("ts,ts,v\n1,a,1\n", {}, "appears twice"),
        ("", {}, "is empty"),
    ],
)
def test_mistakes_are_named(tmp_path, text, options, says):
    path = write(tmp_path / "t.csv", text)
    with pytest.raises(UserError, match=says):
        create("trace", {"path": str(path), "time": "ts"} | options, STREAM)


def test_a_missing_or_strange_file(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        trace(tmp_path / "no.csv")
    with pytest.raises(UserError, match="must end in"):
        trace(write(tmp_path / "t.txt", "ts\n"))
    with pytest.raises(UserError, match="cannot be read as Parquet"):
        trace(write(tmp_path / "t.parquet", "no"))
    bad = tmp_path / "t.csv.gz"
    bad.write_bytes(b"no gzip")
    with pytest.raises(UserError, match="cannot be read as CSV"):
        trace(bad)


def test_a_wrong_unit_is_said_when_the_trace_begins(tmp_path):
    source = trace(write(tmp_path / "t.csv", "ts,k,v\n2024-01-01,a,1\n"))
    with pytest.raises(UserError, match=r"no value of column ts is a time in the unit 's' .*'2024-01-01'"):
        source.poll(0.0)


def shared(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not in ../shared/data")
    return path


def test_bellcore_packets():
    stream = Stream("p", parse_schema("ts timestamp, size_bytes int"), event_time="ts")
    batches = play(trace(shared("bellcore_bc_paug89_first100k.csv.gz"), stream, time="ts_s"), step=10.0)
    times = arrivals(batches)
    assert len(times) == 100_001
    assert np.all(np.diff(times) >= 0)
    # Its index of dispersion at 1 s is 29 (Poisson: 1): replay keeps the burstiness.
    counts = np.histogram(times / 1e6 - 1000, bins=np.arange(0, 253))[0]
    assert 20 < counts.var() / counts.mean() < 40


def test_zeek_events_come_late_in_file_order():
    stream = Stream(
        "z", parse_schema("ts timestamp, log string, uid string, orig_p int, value string"), event_time="ts", lateness=1
    )
    path = shared("wrccdc2018_zeek_events.csv.gz")
    batches = play(trace(path, stream, speed=10), step=10.0)
    times = arrivals(batches)
    assert len(times) == 152_344
    assert 126 < (times[-1] - times[0]) / 1e6 < 128
