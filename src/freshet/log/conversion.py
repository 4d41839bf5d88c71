"""Values as they come, to the types of a stream.

Numbers and texts are read as each other where nothing is lost (``"5"`` as 5, 5 as ``"5"``, 5.0 as 5; not 5.5
as 5). A timestamp may come as ISO 8601 text, as a number (seconds since the epoch, as in Spark's cast), or as a
timestamp of any unit. One without a zone means the stream's time zone; where clocks are put back and it could mean
two moments, the first. A ``timestamp_ntz`` column holds the wall clock of that zone. Digits beyond microseconds are
cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from freshet.model.schema import type_text

_FAILURES: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)
_ZONE: Final = r"\d:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)$"
_UTC: Final = pa.timestamp("us", tz="UTC")
_LOCAL: Final = pa.timestamp("us")


def convert(values: pa.Array | Sequence[Any], field: pa.Field, zone: str) -> tuple[pa.Array, dict[int, str]]:
    """The values of a column in its type, and why some of them do not fit (they become NULL).

    What fits is converted at once; only around a value that does not is the column taken apart.

    >>> array, reasons = convert(["1", "x", 3], pa.field("v", pa.int64()), "UTC")
    >>> array.to_pylist(), reasons
    ([1, None, 3], {1: "column v: 'x' is not of type bigint"})
    """
    reasons: dict[int, str] = {}
    step = _from_arrow if isinstance(values, pa.Array) else _from_python
    parts = _convert_parts(values, 0, lambda part: step(part, field.type, zone), field, reasons)
    return pa.concat_arrays(parts) if len(parts) > 1 else parts[0], reasons


def _convert_parts(
    values: pa.Array | Sequence[Any],
    start: int,
    step: Callable[[pa.Array | Sequence[Any]], pa.Array],
    field: pa.Field,
    reasons: dict[int, str],
) -> list[pa.Array]:
    try:
        return [step(values)]
    except _FAILURES:
        if len(values) == 1:
            reasons[start] = _reason(values[0], field)
            return [pa.nulls(1, field.type)]
    half = len(values) // 2
    return [
        *_convert_parts(values[:half], start, step, field, reasons),
        *_convert_parts(values[half:], start + half, step, field, reasons),
    ]


def _reason(value: Any, field: pa.Field) -> str:
    text = repr(value.as_py() if isinstance(value, pa.Scalar) else value)
    shown = text if len(text) <= 80 else text[:77] + "..."
    return f"column {field.name}: {shown} is not of type {type_text(field.type)}"


def _from_python(values: Sequence[Any], target: pa.DataType, zone: str) -> pa.Array:
    if pa.types.is_struct(target) or pa.types.is_map(target):
        return pa.array(values, target)
    if pa.types.is_timestamp(target):
        # Arrow would take a datetime without a zone for UTC as soon as another one has a zone.
        values = [_in_zone(value, zone) for value in values]
    # Not pa.array(values, target): that cuts 5.5 down to 5 without a word.
    return _from_arrow(pa.array(values), target, zone)


def _in_zone(value: Any, zone: str) -> Any:
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=ZoneInfo(zone))
    return value


def _from_arrow(values: pa.Array, target: pa.DataType, zone: str) -> pa.Array:
    if values.type == target:
        return values
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), target)
    if pa.types.is_timestamp(target):
        return _timestamps(values, target, zone)
    if pa.types.is_temporal(values.type) and not (pa.types.is_temporal(target) or pa.types.is_string(target)):
        raise TypeError("a time is not a number")
    if _is_text(values.type) and not pa.types.is_string(target) and not pa.types.is_binary(target):
        values = pc.utf8_trim_whitespace(values)
    rounding = pa.types.is_integer(values.type) and pa.types.is_floating(target)
    return values.cast(options=pc.CastOptions(target, allow_float_truncate=rounding))


def _timestamps(values: pa.Array, target: pa.DataType, zone: str) -> pa.Array:
    kind = values.type
    if _is_text(kind):
        return _parse(values, target, zone)
    if pa.types.is_integer(kind):
        moments = pc.multiply_checked(values.cast(pa.int64()), 1_000_000).cast(_UTC)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        moments = pc.round(pc.multiply(values.cast(pa.float64()), 1e6)).cast(pa.int64()).cast(_UTC)
    elif pa.types.is_timestamp(kind):
        moments = values.cast(options=pc.CastOptions(pa.timestamp("us", kind.tz), allow_time_truncate=True))
    elif pa.types.is_date(kind):
        moments = values.cast(_LOCAL)
    else:
        raise TypeError(f"{kind} is not a time")
    return _placed(moments, target, zone)


def _parse(texts: pa.Array, target: pa.DataType, zone: str) -> pa.Array:
    texts = pc.utf8_trim_whitespace(texts.cast(pa.string()))
    zoned = pc.match_substring_regex(texts, _ZONE)
    texts = pc.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")
    nothing = pa.scalar(None, pa.string())
    moments = pc.if_else(zoned, texts, nothing).cast(_UTC)
    local = pc.if_else(zoned, nothing, texts).cast(_LOCAL)
    return pc.coalesce(_placed(moments, target, zone), _placed(local, target, zone))


def _placed(times: pa.Array, target: pa.DataType, zone: str) -> pa.Array:
    """Wall clock to moment, or moment to wall clock, as the column asks."""
    if times.type.tz is None and target.tz is not None:
        return pc.assume_timezone(times, zone, ambiguous="earliest", nonexistent="earliest").cast(target)
    if times.type.tz is not None and target.tz is None:
        return pc.local_timestamp(times.cast(pa.timestamp("us", zone)))
    return times.cast(target)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
