"""Timestamps of traces, in the units that people write them in."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from freshet.log.intake.conversion import convert
from freshet.model import Stream

TimeUnit = Literal["s", "ms", "us", "ns", "iso"]

_MOMENTS: Final = pa.field("time", pa.timestamp("us", tz="UTC"))
_PER_SECOND: Final = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def seconds_of(values: pa.ChunkedArray, unit: TimeUnit, zone: str) -> NDArray[np.float64]:
    """Seconds since the epoch (or whatever 0 means in the trace); NaN for a value that is no time.

    A column of timestamps is accepted as it is, whatever the unit. ISO times without a zone are in ``zone``.

    >>> seconds_of(pa.chunked_array([["1.5", "soon", None]]), "s", "UTC").tolist()
    [1.5, nan, nan]
    >>> seconds_of(pa.chunked_array([["1970-01-01T00:00:01.5Z", "1970-01-01 01:00:02"]]), "iso", "UTC").tolist()
    [1.5, 3602.0]
    """
    if unit == "iso" or pa.types.is_timestamp(values.type):
        # Converted like the stream's own column, so that both mean the same moment.
        column, _ = convert(pa.concat_arrays(values.chunks or [pa.array([], values.type)]), _MOMENTS, zone)
        return _plain(column.cast(pa.int64()).cast(pa.float64())) / 1e6
    times = _numbers(values) / _PER_SECOND[unit]
    times[~np.isfinite(times)] = np.nan
    return times


def _numbers(values: pa.ChunkedArray) -> NDArray[np.float64]:
    """Converts all values together; if one of them is wrong, one by one."""
    try:
        return _plain(values.cast(pa.float64()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.array([_or_nan(value) for value in values.to_pylist()], np.float64)


def _or_nan(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _plain(values: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    filled = pc.fill_null(values, float("nan"))
    return np.array(filled, np.float64)


def event_seconds(time: datetime | float, stream: Stream) -> float:
    """A moment as the event-time column of a stream counts it: a ``timestamp_ntz`` column holds the wall clock of the
    stream's zone. A datetime without a zone is in that zone.

    >>> from freshet.model import parse_schema
    >>> stream = Stream("s", parse_schema("ts timestamp_ntz"), event_time="ts", time_zone="Europe/Berlin")
    >>> event_seconds(0.0, stream), event_seconds(datetime(1970, 1, 1, 1), stream)
    (3600.0, 3600.0)
    """
    zone = ZoneInfo(stream.time_zone)
    if isinstance(time, datetime):
        time = (time if time.tzinfo else time.replace(tzinfo=zone)).timestamp()
    if stream.event_time is None or stream.schema.field(stream.event_time).type.tz is not None:
        return time
    return datetime.fromtimestamp(time, zone).replace(tzinfo=UTC).timestamp()
