"""Event times as microseconds: when tuples are valid, and how far time has advanced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.arrow import decode
from freshet.kernels.expressions.types import TIMESTAMP
from freshet.kernels.expressions.value import Mask, both
from freshet.kernels.folds.arrays import Ints, flat
from freshet.model import ARRIVAL, Lifetime, UserError

_LATEST: Final = np.iinfo(np.int64).max


class Spans(NamedTuple):
    """The validity ``[start, end)`` of each tuple; a tuple that is not ``known`` is never valid."""

    start: Ints
    end: Ints
    known: Mask | None


def check_time(schema: pa.Schema, column: str | None) -> None:
    """Refuses a column that is no time."""
    if column is None or column == ARRIVAL:
        return
    kind = schema.field(column).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind) or kind == pa.int64()):
        raise UserError(f"column {column} has type {kind}, but the time of a window must be a timestamp")


def time_type(schema: pa.Schema, column: str | None) -> pa.DataType:
    """The type of boundaries: that of the time column if it holds timestamps.

    >>> str(time_type(pa.schema({"ts": pa.timestamp("us")}), "ts")), str(time_type(pa.schema({}), None))
    ('timestamp[us]', 'timestamp[us, tz=UTC]')
    """
    if column is None or column == ARRIVAL or not pa.types.is_timestamp(schema.field(column).type):
        return TIMESTAMP
    return pa.timestamp("us", tz=schema.field(column).type.tz)


def micros(table: pa.Table, column: str | None) -> tuple[Ints, Mask | None]:
    """A column of times as microseconds, and where it is not NULL."""
    array = flat(table, column or ARRIVAL)
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", tz=array.type.tz)).view(pa.int64())
    value = decode(array)
    return value.values, value.valid


def spans(table: pa.Table, validity: Lifetime) -> Spans:
    """The validity of the tuples of a table; an end beyond all timestamps becomes the last timestamp."""
    start, known = micros(table, validity.time)
    if validity.size is None:
        end, others = micros(table, validity.until)
        return Spans(start, end, both(known, others))
    return Spans(start, ends(start, validity.size), known)


def ends(start: Ints, size: int) -> Ints:
    """The ends of the validity of tuples that are valid for ``size`` microseconds.

    >>> ends(np.array([5, 2**63 - 2]), 10).tolist() == [15, 2**63 - 1]
    True
    """
    latest: Ints = np.minimum(start, _LATEST - size) + size
    return latest


def earliest(watermarks: Sequence[int | None]) -> int | None:
    """The common watermark of several ports: the earliest, if all are known.

    >>> earliest([5, 3]), earliest([5, None])
    (3, None)
    """
    known = [each for each in watermarks if each is not None]
    return min(known) if known and len(known) == len(watermarks) else None
