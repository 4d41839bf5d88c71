"""Converts columns of one built-in Python type to the types of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from freshet.log.intake.casts import cast, placed
from freshet.log.intake.zones import CLOCK, MOMENT, moments

_ARROW: Final[dict[type, pa.DataType]] = {
    type(None): pa.null(), bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(),
    bytes: pa.binary(), date: pa.date32(), time: pa.time64("us"),
}  # fmt: skip
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DIGITS: Final = 76
"""Digits of Arrow's widest decimal. Arrow would write out the zeros of 1E+999999999 before it refuses it."""


def from_type(values: Sequence[Any], python: type, kind: pa.DataType, zone: str) -> pa.Array:
    """Values that are all of one type, or None.

    Raises:
        Exception: At least one of them does not fit.

    >>> from_type([1, None], int, pa.decimal128(4, 2), "UTC").to_pylist()
    [Decimal('1.00'), None]
    """
    if python is datetime:
        return _from_datetimes(values, kind, zone)
    if python is Decimal:
        return _from_decimals(values, kind, zone)
    try:
        # In its own type first: Arrow would silently cut 5.5 down to 5.
        column = pa.array(values, _ARROW[python])
    except OverflowError:
        return _from_large(values, kind)
    except KeyError:
        raise TypeError(f"{python.__name__} is not a single value") from None
    return cast(column, kind, zone)


def _from_large(numbers: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """Integers that do not fit into 64 bits, for types that have room for them."""
    if pa.types.is_floating(kind):
        return _floats(numbers, kind)
    if pa.types.is_string(kind):
        return pa.array([None if number is None else str(number) for number in numbers], kind)
    if pa.types.is_decimal(kind):
        return pa.array([None if number is None else Decimal(number) for number in numbers], kind)
    raise TypeError("too large a number")


def _from_decimals(values: Sequence[Decimal | None], kind: pa.DataType, zone: str) -> pa.Array:
    if pa.types.is_decimal(kind):
        return pa.array(values, kind)
    if pa.types.is_floating(kind):
        return _floats(values, kind)
    if any(value is not None and not (value.is_finite() and abs(value.adjusted()) <= _DIGITS) for value in values):
        raise ValueError("too many digits")
    return cast(pa.array(values), kind, zone)


def _floats(numbers: Sequence[int | Decimal | None], kind: pa.DataType) -> pa.Array:
    return pa.array([None if number is None else float(number) for number in numbers], pa.float64()).cast(kind)


def _from_datetimes(values: Sequence[datetime | None], kind: pa.DataType, zone: str) -> pa.Array:
    forms = {(value.tzinfo is None, value.fold) for value in values if value is not None}
    naive = {without for without, _ in forms}
    if len(naive) > 1:
        raise TypeError("times with a zone and times without")
    if not pa.types.is_timestamp(kind):
        return _from_times(values, naive, kind, zone)
    if naive == {False}:
        # Arrow would drop the fractions of a second of an offset.
        micros = [None if value is None else (value - _EPOCH) // _MICROSECOND for value in values]
        return placed(pa.array(micros, pa.int64()).cast(MOMENT), kind, zone)
    clocks = pa.array(values, CLOCK)
    found = placed(clocks, kind, zone)
    if (True, 1) not in forms:
        return found
    folded = pa.array([value is not None and value.fold == 1 for value in values])
    return pc.if_else(folded, placed(moments(clocks, zone, second=True), kind, zone), found)


def _from_times(values: Sequence[datetime | None], naive: set[bool], kind: pa.DataType, zone: str) -> pa.Array:
    """Datetimes in a column of another type, each as its own zone shows it."""
    if naive == {False} and len(values) > 1:
        raise TypeError("each may have another zone")
    return cast(pa.array(values), kind, zone)
