import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from freshet.sinks.rows import json_lines


def parsed(table: pa.Table) -> list[dict[str, Any]]:
    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in json_lines(table)]


def test_every_type_has_its_form():
    table = pa.table(
        {
            "at": pa.array([datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC), None], pa.timestamp("us", tz="UTC")),
            "local": pa.array([datetime(2024, 1, 2), None], pa.timestamp("us")),
            "day": pa.array([date(2024, 2, 29), None]),
            "price": pa.array([Decimal("1.50"), None], pa.decimal128(20, 2)),
            "raw": pa.array([b"\xff\x00", None]),
            "flag": pa.array([True, None]),
            "text": pa.array(['say "ü"\n', None]),
            "list": pa.array([[1.5, float("inf"), None], None]),
            "nested": pa.array([{"a": b"x", "b": [date(2024, 1, 1)]}, None]),
            "map": pa.array([[("k", float("nan"))], None], pa.map_(pa.string(), pa.float64())),
            "pairs": pa.array([[(1, "one")], None], pa.map_(pa.int32(), pa.string())),
        }
    )
    first, second = parsed(table)
    assert first == {
        "at": "2024-01-02T03:04:05.000006Z",
        "local": "2024-01-02T00:00:00.000000",
        "day": "2024-02-29",
        "price": "1.50",
        "raw": "/wA=",
        "flag": True,
        "text": 'say "ü"\n',
        "list": [1.5, "Infinity", None],
        "nested": {"a": "eA==", "b": ["2024-01-01"]},
        "map": {"k": "NaN"},
        "pairs": [[1, "one"]],
    }
    assert set(second.values()) == {None}


def test_years_that_python_does_not_know():
    table = pa.table({"at": pa.array([253_402_300_800 * 10**6], pa.timestamp("us", tz="UTC"))})
    assert "10000-01-01T00:00:00" in parsed(table)[0]["at"]


@given(st.lists(st.one_of(st.none(), st.floats())))
def test_floats_are_exact_or_named(values):
    names = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
    got = [row["v"] for row in parsed(pa.table({"v": pa.array(values, pa.float64())}))]
    assert [names.get(value, repr(value)) for value in got] == [repr(value) for value in values]
