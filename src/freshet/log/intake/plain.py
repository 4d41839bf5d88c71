"""Turns values of any class into plain ones: the built-in types that Arrow takes without looking further.

Arrow guesses a type from the values that it gets, and some mixtures (a NumPy time before a NumPy number, a list
in place of a map) end the process. So it gets only columns of one built-in type.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

SCALARS: Final = frozenset({type(None), bool, int, float, str, bytes, Decimal, date, datetime, time})
"""What a single value is after :func:`plain`."""
PLAIN: Final = SCALARS | {list, tuple, dict}
_FINER: Final = ("ns", "ps", "fs", "as")
"""Units of NumPy that are cut down to microseconds."""


def plain(value: Any) -> Any:
    """The value as a built-in type; the parts of a list or a mapping stay what they are.

    Raises:
        TypeError: The value is of no such kind. A value of an unknown class may raise anything.

    >>> plain(np.float32(0.5)), plain(np.datetime64("2024-01-02", "ns")), plain(bytearray(b"ab"))
    (0.5, datetime.datetime(2024, 1, 2, 0, 0), b'ab')
    """
    kind = type(value)
    if kind in PLAIN:
        return value
    if is_missing(value):
        return None
    for base, make in _MAKERS:
        if issubclass(kind, base):
            made = make(value)
            if type(made) not in PLAIN:
                break
            return made
    raise TypeError(f"{kind.__name__} is no value of a column")


def is_missing(value: Any) -> bool:
    """Whether it is one of pandas' values for NULL. They can only occur if pandas is loaded.

    >>> is_missing(None), is_missing(float("nan"))
    (False, False)
    """
    pandas = sys.modules.get("pandas")
    return pandas is not None and (value is getattr(pandas, "NA", value) or value is getattr(pandas, "NaT", value))


def _datetime(value: datetime) -> datetime:
    return datetime(
        value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, value.tzinfo,
        fold=value.fold,
    )  # fmt: skip


def _numpy_time(value: np.datetime64) -> datetime | None:
    micros = value.astype("datetime64[us]")
    if np.datetime_data(value.dtype)[0] not in _FINER and not np.isnat(value) and micros.astype(value.dtype) != value:
        raise OverflowError("a time that microseconds cannot count")
    # It stays a number if Python has no such year; its type then refuses it.
    return micros.item()  # type: ignore[no-any-return]


def _refused(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} is no value of a column")


_MAKERS: Final[Sequence[tuple[Any, Callable[[Any], Any]]]] = (
    # Before int and float: NumPy's float64 is also a Python float.
    (np.datetime64, _numpy_time),
    (np.timedelta64, _refused),
    (np.floating, float),
    (np.integer | np.bool_, lambda value: value.item()),
    (str, str.__str__),
    (int, int.__index__),
    (float, float.__float__),
    (bytes | bytearray | memoryview, bytes),
    (Decimal, Decimal),
    (datetime, _datetime),
    (date, lambda value: date(value.year, value.month, value.day)),
    (np.ndarray, lambda value: list(value) if value.ndim else _refused(value)),
    (pa.Scalar, lambda value: plain(value.as_py())),
    (Mapping, dict),
    (Sequence | Set, list),
)
