from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.log import Intake, Limits, Log, LogFull, Receipt
from freshet.model import ARRIVAL, Stream, parse_schema

STREAM = Stream("s", parse_schema("ts timestamp, v int"), event_time="ts", lateness=10)
PLAIN = Stream("p", parse_schema("k bigint, name string"))


def lines(state: Path, kind: str, stream: str = "s") -> list[dict[str, Any]]:
    path = state / kind / f"{stream}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def log(tmp_path: Path):
    with Log.open(tmp_path) as log:
        log.declare("s")
        log.declare("p")
        yield log


def test_rows_become_tuples_dead_letters_or_late_rows(log: Log, tmp_path: Path) -> None:
    intake = Intake(log, STREAM)
    receipt = intake.append(
        [
            {"ts": 100, "v": 1},
            {"ts": "1970-01-01T00:01:30Z"},
            {"ts": 89.999999, "v": 3},
            {"ts": 200, "v": "x"},
            {"ts": None, "v": 5},
            {"ts": 101, "v": 6, "w": 1},
            ["ts", 1],
            {"ts": 90, "v": 8},
        ],
        np.arange(10, 18),
        {"line": 8},
    )
    assert receipt == Receipt(0, 3, dead=4, late=1)
    table = log.read("s", 0, 3)
    assert table.schema == STREAM.schema.append(pa.field(ARRIVAL, pa.int64()))
    assert table["v"].to_pylist() == [1, None, 8]
    assert table[ARRIVAL].to_pylist() == [10, 11, 17]
    assert [(line["arrival"], line["reason"]) for line in lines(tmp_path, "dead")] == [
        (13, "column v: 'x' is not of type int"),
        (14, "column ts: the event time is NULL"),
        (15, "the stream has no column w"),
        (16, "a row must be a mapping of columns to values, not list"),
    ]
    assert lines(tmp_path, "late") == [
        {
            "arrival": 12,
            "reason": "10 s behind the newest event time; the lateness is 10 s",
            "row": {"ts": 89.999999, "v": 3},
        }
    ]
    assert log.source_position("s") == {"line": 8}
    meter = log.meters().streams["s"]
    assert (meter.dead, meter.late) == (4, 1)


def test_the_newest_event_time_survives_a_restart(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s")
        Intake(log, STREAM).append([{"ts": 1000}], 1)
    with Log.open(tmp_path) as log:
        receipt = Intake(log, STREAM).append([{"ts": 980}, {"ts": 990}], 2)
        assert (receipt.dead, receipt.late, log.end("s")) == (0, 1, 2)


def test_tables_that_fit_are_taken_as_they_are(log: Log) -> None:
    table = pa.table({"name": ["a", "b"], "k": pa.array([1, 2], pa.int64())})
    assert Intake(log, PLAIN).append(table, 7) == Receipt(0, 2, 0, 0)
    assert Intake(log, PLAIN).append(table.to_batches()[0], 8) == Receipt(2, 4, 0, 0)
    assert log.read("p", 1, 3).to_pylist() == [
        {"k": 2, "name": "b", ARRIVAL: 7},
        {"k": 1, "name": "a", ARRIVAL: 8},
    ]


def test_tables_of_other_types_are_cast(log: Log, tmp_path: Path) -> None:
    table = pa.table({"k": pa.chunked_array([["1"], ["x", "3"]])})
    assert Intake(log, PLAIN).append(table, 7) == Receipt(0, 2, 1, 0)
    assert log.read("p", 0, 2).to_pylist() == [
        {"k": 1, "name": None, ARRIVAL: 7},
        {"k": 3, "name": None, ARRIVAL: 7},
    ]
    assert [line["row"] for line in lines(tmp_path, "dead", "p")] == [{"k": "x"}]


def test_a_table_with_a_strange_column_is_dead(log: Log, tmp_path: Path) -> None:
    receipt = Intake(log, PLAIN).append(pa.table({"k": [1, 2], "z": [1, 2]}), 7)
    assert receipt == Receipt(0, 0, 2, 0)
    assert {line["reason"] for line in lines(tmp_path, "dead", "p")} == {"the stream has no column z"}


def test_nothing_in_nothing_out(log: Log) -> None:
    nothing: list[Any] = [[], PLAIN.schema.empty_table(), pa.table({"k": pa.array([], pa.string())})]
    for rows in nothing:
        assert Intake(log, PLAIN).append(rows, 1) == Receipt(0, 0, 0, 0)


def test_a_full_log_takes_in_nothing_of_a_batch(tmp_path: Path) -> None:
    with Log.open(tmp_path, limits=Limits(min_free_bytes=2**62)) as log:
        log.declare("s")
        with pytest.raises(LogFull, match="bytes of disk are free"):
            Intake(log, STREAM).append([{"ts": 1}, {"ts": "x"}], 1, {"line": 2})
        assert log.source_position("s") is None
        assert log.newest("s") is None
    assert lines(tmp_path, "dead") == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.one_of(st.integers(0, 60), st.none()), max_size=6), max_size=5))
def test_lateness_does_not_depend_on_how_rows_are_cut(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int | None]]
) -> None:
    kept: list[int] = []
    dead = late = 0
    newest = None
    for value in (value for batch in batches for value in batch):
        if value is None:
            dead += 1
            continue
        if newest is not None and value < newest - 10:
            late += 1
        else:
            kept.append(value)
        newest = value if newest is None else max(newest, value)
    with Log.open(tmp_path_factory.mktemp("state")) as log:
        log.declare("s")
        intake = Intake(log, STREAM)
        for number, batch in enumerate(batches):
            intake.append([{"ts": value, "v": 0} for value in batch], number)
        end = log.end("s")
        found = log.read("s", 0, end)["ts"].cast(pa.int64()).to_numpy() // 10**6 if end else []
        assert list(found) == kept
        meter = log.meters().streams["s"]
        assert (meter.dead, meter.late) == (dead, late)


def test_a_table_with_a_column_twice_is_dead(log: Log, tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["k", "k"])
    assert Intake(log, PLAIN).append(table, 7) == Receipt(0, 0, 1, 0)
    assert [line["reason"] for line in lines(tmp_path, "dead", "p")] == ["column k appears twice"]


def test_a_day_that_no_calendar_has_is_a_dead_letter(tmp_path: Path) -> None:
    stream = Stream("s", parse_schema("k int"))
    days = pa.array([2**31 - 1, 1], pa.int32()).cast(pa.date32())
    with Log.open(tmp_path) as log:
        log.declare("s")
        receipt = Intake(log, stream).append(pa.table({"k": days}), np.array([1, 2]))
    assert (receipt.first, receipt.end, receipt.dead) == (0, 0, 2)
    assert "2147483647" in (tmp_path / "dead" / "s.jsonl").read_text()


ODD_COLUMNS: dict[str, list[tuple[pa.Array, list[Any]]]] = {
    "bigint": [
        (pa.array(["5", None, "x"], pa.string_view()), [5, None]),
        (pa.array([b"5", None, b"x"], pa.binary_view()), [5, None]),
        (pa.RunEndEncodedArray.from_arrays([1, 2, 4], ["5", None, "x"]), [5, None]),
        (pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array(["5", "x"], pa.string_view())), [5, None]),
    ],
    "string": [
        (pa.array(["5", None, "x"], pa.string_view()), ["5", None, "x"]),
        (pa.array([b"\xff", b"ok"], pa.large_binary()).view(pa.large_string()), ["ok"]),
    ],
    "array<bigint>": [
        (pa.array([[1, 2], None, [], [None], [7]], pa.list_view(pa.int32())), [[1, 2], None, [], [None], [7]]),
        (pa.array([[1, 2], None, [], [None], [7]], pa.large_list_view(pa.int8())), [[1, 2], None, [], [None], [7]]),
        (pa.array([["1"], None, ["x"]], pa.list_(pa.string_view())), [[1], None]),
    ],
    "array<string>": [
        (pa.ListArray.from_arrays(
            pa.array([0, 1, 3], pa.int32()), pa.array([b"\xff", b"a", b"b"], pa.large_binary()).view(pa.large_string())
         ), [["a", "b"]]),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "column", "expected"),
    [(kind, *each) for kind, columns in ODD_COLUMNS.items() for each in columns],
    ids=lambda value: str(getattr(value, "type", "")) or None,
)
@pytest.mark.parametrize("cut", ["whole", "chunks"])
def test_columns_of_types_that_arrow_hardly_knows(
    kind: str, column: pa.Array, expected: list[Any], cut: str, tmp_path: Path
) -> None:
    chunks = [column] if cut == "whole" else [column[:1], column[1:2], column[2:]]
    with Log.open(tmp_path) as log:
        log.declare("s")
        table = pa.table({"v": pa.chunked_array(chunks)})
        receipt = Intake(log, Stream("s", parse_schema(f"v {kind}"))).append(table, 1)
        assert receipt == Receipt(0, len(expected), dead=len(column) - len(expected), late=0)
        taken = log.read("s", 0, receipt.end)
    taken.validate(full=True)
    assert taken["v"].to_pylist() == expected
    assert len(lines(tmp_path, "dead")) == receipt.dead


def test_a_row_with_a_column_that_arrow_hardly_knows_can_be_set_aside(log: Log, tmp_path: Path) -> None:
    table = pa.table({"k": ["x"], "name": pa.array(["a"], pa.string_view())})
    assert Intake(log, PLAIN).append(table, 1) == Receipt(0, 0, dead=1, late=0)
    assert [line["row"] for line in lines(tmp_path, "dead", "p")] == [{"k": "x", "name": "a"}]
