"""Timestamps of traces, in the units that people write them in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from freshet.model import Stream

Unit = Literal["s", "ms", "us", "ns", "iso"]

_PER_SECOND: Final = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def seconds_of(values: pa.ChunkedArray, unit: Unit, zone: str) -> NDArray[np.float64]:
    """Seconds since the epoch (or whatever 0 means in the trace); NaN for what is no time.

    A column of timestamps is taken as it is, whatever the unit. ISO times without a zone are in ``zone``.

    >>> seconds_of(pa.chunked_array([["1.5", "soon", None]]), "s", "UTC").tolist()
    [1.5, nan, nan]
    >>> seconds_of(pa.chunked_array([["1970-01-01T00:00:01.5Z", "1970-01-01 01:00:02"]]), "iso", "UTC").tolist()
    [1.5, 3602.0]
    """
    if pa.types.is_timestamp(values.type):
        return _from_timestamps(values, zone)
    if unit == "iso":
        return _try_all(values, lambda: _iso_column(values, zone), lambda text: _iso(text, zone))
    times = _try_all(values, lambda: _numbers(values), float) / _PER_SECOND[unit]
    times[~np.isfinite(times)] = np.nan
    return times


def _try_all(
    values: pa.ChunkedArray,
    together: Callable[[], NDArray[np.float64]],
    alone: Callable[[Any], float],
) -> NDArray[np.float64]:
    """All values together where that works, and one by one where a wrong one is among them."""
    try:
        return together()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.array([_or_nan(alone, value) for value in values.to_pylist()], np.float64)


def _or_nan(convert: Callable[[Any], float], value: Any) -> float:
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _numbers(values: pa.ChunkedArray) -> NDArray[np.float64]:
    return _plain(values.cast(pa.float64()))


def _iso_column(values: pa.ChunkedArray, zone: str) -> NDArray[np.float64]:
    try:
        return _from_timestamps(values.cast(pa.timestamp("us", tz="UTC")), zone)
    except pa.ArrowInvalid:
        return _from_timestamps(values.cast(pa.timestamp("us")), zone)


def _from_timestamps(values: pa.ChunkedArray, zone: str) -> NDArray[np.float64]:
    if values.type.tz is None:
        values = pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="latest")
    return _plain(values.cast(pa.timestamp("us", tz="UTC"), safe=False).cast(pa.int64()).cast(pa.float64())) / 1e6


def _iso(text: str, zone: str) -> float:
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=ZoneInfo(zone))).timestamp()


def _plain(values: pa.ChunkedArray) -> NDArray[np.float64]:
    filled = pc.fill_null(values, float("nan"))
    return np.array(filled.to_numpy(), np.float64)


def event_seconds(time: datetime | float, stream: Stream) -> float:
    """A moment as the event-time column of a stream counts it: a ``timestamp_ntz`` column holds the wall clock of the
    stream's zone. A datetime without a zone means that zone.

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
