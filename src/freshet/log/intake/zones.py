"""Wall clocks and moments: one rule for every time without a zone, the same as Spark's.

When clocks are put forward, a time that no clock shows moves on by the length of the gap: 02:30 becomes 03:30.
When they are put back, a time that clocks show twice means the first moment.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

MOMENT: Final = pa.timestamp("us", tz="UTC")
CLOCK: Final = pa.timestamp("us")

_EPOCH: Final = datetime(1970, 1, 1)
_LISTED: Final = (datetime(2037, 1, 1) - _EPOCH) // timedelta(microseconds=1)
"""Arrow knows the changes that a zone's file lists. They end with 2037; it does not know the rule for later years."""
_CYCLE: Final = 146_097 * 86_400_000_000
"""Microseconds in 400 years: after that the calendar, and with it every rule, repeats."""


def moments(clocks: pa.Array, zone: str, *, second: bool = False) -> pa.Array:
    """The moments at which clocks of a zone show these times.

    Args:
        clocks: Timestamps without a zone, in microseconds.
        zone: Name of the zone.
        second: Take the second moment if there are two.

    >>> clocks = pa.array([datetime(2024, 3, 10, 2, 30), datetime(2024, 11, 3, 1, 30)], CLOCK)
    >>> [str(moment) for moment in moments(clocks, "America/New_York")]
    ['2024-03-10 07:30:00+00:00', '2024-11-03 05:30:00+00:00']
    """
    ambiguous = "latest" if second else "earliest"
    # In a gap this is the last moment before it; its offset counts for the whole gap.
    near = pc.assume_timezone(clocks, zone, ambiguous=ambiguous, nonexistent="earliest")
    offsets = pc.subtract(pc.local_timestamp(near).cast(pa.int64()), near.cast(pa.int64()))
    found = pc.subtract(clocks.cast(pa.int64()), offsets)
    return _behind_lists(clocks, found, lambda clock: _offset(clock, zone, fold=second)).cast(MOMENT)


def wall_clocks(times: pa.Array, zone: str) -> pa.Array:
    """What clocks of a zone show at these moments.

    >>> wall_clocks(pa.array([datetime(2040, 7, 1, 12)], MOMENT), "America/New_York")[0].as_py()
    datetime.datetime(2040, 7, 1, 8, 0)
    """
    shown = pc.local_timestamp(times.cast(pa.timestamp("us", zone))).cast(pa.int64())
    return _behind_lists(times, shown, lambda moment: -_offset_at(moment, zone)).cast(CLOCK)


def _behind_lists(times: pa.Array, found: pa.Array, offset: Callable[[datetime], timedelta]) -> pa.Array:
    """What Arrow found; times beyond its lists of changes get their distance from what ``offset`` says."""
    numbers = times.cast(pa.int64())
    behind = pc.fill_null(pc.greater(numbers, _LISTED), False)
    if not pc.any(behind, min_count=0).as_py():
        return found
    right = [number - _micros(offset(_in_cycle(number))) for number in numbers.filter(behind).to_pylist()]
    return pc.replace_with_mask(found, behind, pa.array(right, pa.int64()))


def _in_cycle(number: int) -> datetime:
    """A time of the same rule within Python's years."""
    return _EPOCH + timedelta(microseconds=_LISTED + (number - _LISTED) % _CYCLE)


def _offset(clock: datetime, zone: str, fold: bool) -> timedelta:
    place = clock.replace(tzinfo=ZoneInfo(zone), fold=fold)
    if fold and place.utcoffset() > place.replace(fold=0).utcoffset():  # type: ignore[operator]
        # In a gap there is no second moment.
        place = place.replace(fold=0)
    return place.utcoffset() or timedelta()


def _offset_at(moment: datetime, zone: str) -> timedelta:
    return moment.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).utcoffset() or timedelta()


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
