"""Columns of Arrow to the types of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from freshet.log.intake.zones import CLOCK, MOMENT, moments, wall_clocks

_ZONE: Final = r"\d:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)$"


def cast(values: pa.Array, target: pa.DataType, zone: str) -> pa.Array:
    """The values in another type.

    Raises:
        ArrowException, TypeError: At least one of them does not fit.

    >>> cast(pa.array(["1", " 2 "]), pa.int64(), "UTC").to_pylist()
    [1, 2]
    """
    kind = values.type
    if kind == target:
        return _valid(values, lambda given: given)
    if pa.types.is_dictionary(kind):
        return cast(values.dictionary_decode(), target, zone)
    if pa.types.is_null(kind):
        return pa.nulls(len(values), target)
    if pa.types.is_timestamp(target):
        return _timestamps(values, target, zone)
    if pa.types.is_temporal(kind) and not (pa.types.is_temporal(target) or pa.types.is_string(target)):
        raise TypeError("a time is not a number")
    if _is_text(kind) and not pa.types.is_string(target) and not pa.types.is_binary(target):
        values = pc.utf8_trim_whitespace(values)
    if pa.types.is_integer(kind) and pa.types.is_decimal(target):
        # Arrow would make room for every possible integer, not only for those that are there.
        values = values.cast(pa.decimal128(20, 0))
    rounding = pa.types.is_integer(kind) and pa.types.is_floating(target)
    options = pc.CastOptions(target, allow_float_truncate=rounding)
    # Arrow does not look at text that stays text, such as that of a large_string.
    return _valid(values, lambda given: given.cast(options=options))


def castable(kind: pa.DataType) -> bool:
    """Whether Arrow may convert columns of a type by itself.

        Arrow would read beyond the buffers of lists that are views. For other views, for runs and for unions it has
        few functions.

    >>> castable(pa.list_(pa.large_string())), castable(pa.list_view(pa.int32())), castable(pa.string_view())
    (True, False, False)
    """
    if pa.types.is_struct(kind):
        return all(castable(field.type) for field in kind)
    if pa.types.is_map(kind):
        return castable(kind.key_type) and castable(kind.item_type)
    if any(each(kind) for each in _AROUND):
        return castable(kind.value_type)
    return pa.types.is_primitive(kind) or any(each(kind) for each in _SINGLE)


_AROUND: Final = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_dictionary)
_SINGLE: Final = (
    pa.types.is_null, pa.types.is_decimal, pa.types.is_string, pa.types.is_large_string, pa.types.is_binary,
    pa.types.is_large_binary, pa.types.is_fixed_size_binary,
)  # fmt: skip


def _valid(values: pa.Array, make: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The result of ``make``, if it holds what its type says."""
    made = make(values)
    try:
        made.validate(full=True)
    except pa.ArrowInvalid:
        # Arrow judges the whole column even if it is given a part of it; a copy holds that part alone.
        made = make(values.take(pa.array(range(len(values)), pa.int64())))
        made.validate(full=True)
    return made


def _timestamps(values: pa.Array, target: pa.DataType, zone: str) -> pa.Array:
    kind = values.type
    if _is_text(kind):
        return _parse(values, target, zone)
    if pa.types.is_integer(kind):
        times = pc.multiply_checked(values.cast(pa.int64()), 1_000_000).cast(MOMENT)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        times = pc.round(pc.multiply(values.cast(pa.float64()), 1e6)).cast(pa.int64()).cast(MOMENT)
    elif pa.types.is_timestamp(kind):
        times = values.cast(options=pc.CastOptions(pa.timestamp("us", kind.tz), allow_time_truncate=True))
    elif pa.types.is_date(kind):
        times = values.cast(CLOCK)
    else:
        raise TypeError(f"{kind} is not a time")
    return placed(times, target, zone)


def _parse(texts: pa.Array, target: pa.DataType, zone: str) -> pa.Array:
    texts = pc.utf8_trim_whitespace(texts.cast(pa.string()))
    zoned = pc.match_substring_regex(texts, _ZONE)
    texts = pc.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")
    nothing = pa.scalar(None, pa.string())
    times = pc.if_else(zoned, texts, nothing).cast(MOMENT)
    clocks = pc.if_else(zoned, nothing, texts).cast(CLOCK)
    return pc.coalesce(placed(times, target, zone), placed(clocks, target, zone))


def placed(times: pa.Array, target: pa.DataType, zone: str) -> pa.Array:
    """Wall clock to moment, or moment to wall clock, as the column asks."""
    if times.type.tz is None and target.tz is not None:
        return moments(times, zone).cast(target)
    if times.type.tz is not None and target.tz is None:
        return wall_clocks(times, zone)
    return times.cast(target)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
