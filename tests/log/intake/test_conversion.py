from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.log.intake.conversion import convert

UTC_TIME = pa.timestamp("us", tz="UTC")
LOCAL_TIME = pa.timestamp("us")


def one(value: Any, kind: pa.DataType, zone: str = "UTC") -> Any:
    array, reasons = convert([value], pa.field("c", kind), zone)
    assert not reasons, reasons
    assert array.type == kind
    return array[0].as_py()


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("5", pa.int64(), 5),
        (" -5 ", pa.int32(), -5),
        (5.0, pa.int64(), 5),
        ("2.5", pa.float64(), 2.5),
        (7, pa.float64(), 7.0),
        (2**60 + 1, pa.float64(), float(2**60 + 1)),
        (7, pa.string(), "7"),
        (" x ", pa.string(), " x "),
        ("true", pa.bool_(), True),
        (1, pa.bool_(), True),
        ("1.25", pa.decimal128(10, 2), Decimal("1.25")),
        (Decimal("3"), pa.decimal128(10, 2), Decimal("3.00")),
        ("2024-02-29", pa.date32(), date(2024, 2, 29)),
        ("ab", pa.binary(), b"ab"),
        ([1, 2], pa.list_(pa.int32()), [1, 2]),
        ({"a": 1}, pa.struct([("a", pa.int32()), ("b", pa.string())]), {"a": 1, "b": None}),
        ({"k": 1}, pa.map_(pa.string(), pa.int32()), [("k", 1)]),
        (None, UTC_TIME, None),
    ],
)
def test_values_that_fit(value: Any, kind: pa.DataType, expected: Any) -> None:
    assert one(value, kind) == expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (5.5, pa.int64()),
        ("5.5", pa.int64()),
        ("", pa.int64()),
        (300, pa.int8()),
        (2**70, pa.int64()),
        (float("nan"), pa.int64()),
        ("maybe", pa.bool_()),
        ("12.345", pa.decimal128(10, 2)),
        ("2023-02-29", pa.date32()),
        ("2023-02-29T00:00:00", UTC_TIME),
        ("1700000000", UTC_TIME),
        (float("nan"), UTC_TIME),
        (2**62, UTC_TIME),
        (True, UTC_TIME),
        (datetime(2024, 1, 1), pa.int64()),
        ("x", pa.list_(pa.int32())),
        ([1.5], pa.list_(pa.int32())),
        ("x", pa.struct([("a", pa.int32())])),
        (object(), pa.string()),
        ("\ud800", pa.string()),
    ],
)
def test_values_that_do_not_fit_have_a_reason(value: Any, kind: pa.DataType) -> None:
    array, reasons = convert([None, value], pa.field("c", kind), "UTC")
    assert array.to_pylist() == [None, None]
    assert list(reasons) == [1]
    assert reasons[1].startswith("column c: ")
    assert "is not of type" in reasons[1]


NOON = datetime(2024, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2024-07-01T12:00:00Z",
        "2024-07-01 14:00:00+02:00",
        "2024-07-01T14:00:00.000000000+0200",
        "2024-07-01 14:00:00",
        "2024-07-01 14:00",
        1719835200,
        1719835200.0,
        Decimal("1719835200"),
        datetime(2024, 7, 1, 14),
        datetime(2024, 7, 1, 12, tzinfo=UTC),
        datetime(2024, 7, 1, 7, tzinfo=timezone(timedelta(hours=-5))),
    ],
)
def test_times_are_moments_and_take_the_zone_of_the_stream_where_they_have_none(value: Any) -> None:
    assert one(value, UTC_TIME, "Europe/Berlin") == NOON
    assert one(value, LOCAL_TIME, "Europe/Berlin") == datetime(2024, 7, 1, 14)


def test_a_date_is_its_midnight_and_not_a_zone() -> None:
    assert one("2024-07-01", UTC_TIME, "Europe/Berlin") == datetime(2024, 6, 30, 22, tzinfo=UTC)
    assert one(date(2024, 7, 1), UTC_TIME) == datetime(2024, 7, 1, tzinfo=UTC)


def test_clocks_put_back_or_forward() -> None:
    assert one("2024-10-27 02:30:00", UTC_TIME, "Europe/Berlin") == datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
    assert one("2024-03-31 02:30:00", UTC_TIME, "Europe/Berlin") == datetime(2024, 3, 31, 1, 30, tzinfo=UTC)


def test_digits_beyond_microseconds_are_cut() -> None:
    assert one("2024-07-01T12:00:00.123456999Z", UTC_TIME) == NOON.replace(microsecond=123456)
    nanos = pa.array([1_719_835_200_123_456_999], pa.int64()).cast(pa.timestamp("ns", tz="UTC"))
    array, reasons = convert(nanos, pa.field("c", UTC_TIME), "UTC")
    assert (array[0].as_py(), reasons) == (NOON.replace(microsecond=123456), {})


def test_datetimes_with_and_without_a_zone_may_be_mixed() -> None:
    mixed = [datetime(2024, 7, 1, 14), NOON, "2024-07-01T12:00:00Z", "2024-07-01T14:00:00", None]
    array, reasons = convert(mixed, pa.field("c", UTC_TIME), "Europe/Berlin")
    assert (array.to_pylist(), reasons) == ([NOON] * 4 + [None], {})


def test_arrow_columns_of_other_types() -> None:
    field = pa.field("c", pa.int32())
    for values in (
        pa.array(["1", "x", None]),
        pa.array(["1", "x", None], pa.large_string()),
        pa.array(["1", "x", None]).dictionary_encode(),
    ):
        array, reasons = convert(values, field, "UTC")
        assert (array.to_pylist(), reasons) == ([1, None, None], {1: "column c: 'x' is not of type int"})


@given(st.lists(st.one_of(st.integers(-200, 200), st.text(max_size=3), st.floats(), st.none())))
def test_every_value_fits_or_has_a_reason_whatever_stands_beside_it(values: list[Any]) -> None:
    field = pa.field("c", pa.int8())
    array, reasons = convert(values, field, "UTC")
    assert (array.type, len(array)) == (pa.int8(), len(values))
    for place, value in enumerate(values):
        single, why = convert([value], field, "UTC")
        assert array[place] == single[0] or (array[place].as_py() is None and single[0].as_py() is None)
        assert (place in reasons) == bool(why)
