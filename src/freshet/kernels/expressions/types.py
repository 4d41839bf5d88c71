"""Spark's types as Arrow types, and how ANSI mode promotes them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.unsupported import Unsupported
from freshet.model import UserError
from freshet.model.numbers import INTEGERS, common_type
from freshet.model.schema import type_text

BOOLEAN: Final = pa.bool_()
INT: Final = pa.int32()
BIGINT: Final = pa.int64()
FLOAT: Final = pa.float32()
DOUBLE: Final = pa.float64()
STRING: Final = pa.string()
DATE: Final = pa.date32()
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ: Final = pa.timestamp("us")
VOID: Final = pa.null()

DTYPES: Final[dict[pa.DataType, np.dtype[np.generic]]] = {
    BOOLEAN: np.dtype(np.bool_), pa.int8(): np.dtype(np.int8), pa.int16(): np.dtype(np.int16),
    INT: np.dtype(np.int32), BIGINT: np.dtype(np.int64), FLOAT: np.dtype(np.float32),
    DOUBLE: np.dtype(np.float64), DATE: np.dtype(np.int32), TIMESTAMP: np.dtype(np.int64),
    TIMESTAMP_NTZ: np.dtype(np.int64),
}  # fmt: skip
"""The NumPy form of the types whose columns are computed with NumPy; dates and timestamps are counts since 1970."""

_INTEGRAL: Final = frozenset(INTEGERS)
_FRACTIONAL: Final = frozenset((FLOAT, DOUBLE))
_DATETIME: Final = frozenset((DATE, TIMESTAMP, TIMESTAMP_NTZ))


def is_integral(kind: pa.DataType) -> bool:
    """Whether it is tinyint, smallint, int or bigint."""
    return kind in _INTEGRAL


def is_fractional(kind: pa.DataType) -> bool:
    """Whether it is float or double."""
    return kind in _FRACTIONAL


def is_datetime(kind: pa.DataType) -> bool:
    """Whether it is a date or a timestamp of either kind."""
    return kind in _DATETIME


def is_decimal(kind: pa.DataType) -> bool:
    """Whether it is a decimal."""
    return bool(pa.types.is_decimal(kind))


def is_numeric(kind: pa.DataType) -> bool:
    """Whether arithmetic is defined on it."""
    return kind in _INTEGRAL or kind in _FRACTIONAL or is_decimal(kind)


def name(kind: pa.DataType) -> str:
    """Spark's name of a type, for messages."""
    try:
        return "void" if kind == VOID else type_text(kind)
    except UserError:
        return str(kind)


def promoted(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type in which two values meet in ANSI mode; NULL takes the other's type.

    A decimal (here always a literal) and an integer do not meet in the compiled subset.

    >>> str(promoted(pa.int32(), pa.float32())), str(promoted(pa.null(), pa.int64()))
    ('double', 'int64')
    """
    if VOID in (left, right):
        return right if left == VOID else left
    # In the session's time zone, UTC, both kinds of timestamps are one number.
    kind = TIMESTAMP if {left, right} == {TIMESTAMP, TIMESTAMP_NTZ} else common_type(left, right)
    if kind == VOID or (is_decimal(kind) and left != right):
        raise Unsupported(f"{name(left)} with {name(right)}")
    return kind


def common_of(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """The least common type of several. Decimals come last: here they have a common type only with float or double."""
    return reduce(promoted, sorted(kinds, key=is_decimal), VOID)
