"""Values of different types: the type that Spark gives a column that takes both."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
"""From the narrowest to the widest."""
_DIGITS: Final = dict(zip(INTEGERS, (3, 5, 10, 20), strict=True))


def is_number(kind: pa.DataType) -> bool:
    """Whether a type is one of Spark's numeric types."""
    return kind in _DIGITS or bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The common type of two types; ``pa.null()``, the unknown type, if none is certain.

    >>> common_type(pa.int32(), pa.int64()), common_type(pa.int64(), pa.float32()), common_type(pa.int8(), pa.string())
    (DataType(int64), DataType(double), DataType(null))
    """
    if left == right:
        return left
    if is_number(left) and is_number(right):
        return common_number(left, right)
    if pa.types.is_date(left) and pa.types.is_timestamp(right):
        return right
    if pa.types.is_timestamp(left) and pa.types.is_date(right):
        return left
    return pa.null()


def common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The common type of two types of numbers.

    An integer and a float meet as double, because float would lose digits of the integer.

    >>> common_number(pa.int32(), pa.int64()), common_number(pa.int64(), pa.float32())
    (DataType(int64), DataType(double))
    >>> common_number(pa.decimal128(5, 2), pa.int32()), common_number(pa.decimal128(5, 2), pa.float32())
    (Decimal128Type(decimal128(12, 2)), DataType(double))
    """
    if left == right:
        return left
    if left in _DIGITS and right in _DIGITS:
        return max(left, right, key=INTEGERS.index)
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return pa.float64()
    one, two = as_decimal(left), as_decimal(right)
    # Where both do not fit, all digits before the point stay.
    whole, scale = max(one.precision - one.scale, two.precision - two.scale), max(one.scale, two.scale)
    return pa.decimal128(min(38, whole + scale), min(scale, 38 - whole))


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The decimal that holds all values of an integer or decimal type."""
    return kind if pa.types.is_decimal(kind) else pa.decimal128(_DIGITS[kind], 0)
