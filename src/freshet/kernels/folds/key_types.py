"""The type in which keys of two inputs are compared."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from freshet.kernels.expressions.types import common_type, is_decimal, is_integral, name
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.model import UserError

_DIGITS: Final = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}


def key_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The least common type, as Spark compares them.

    >>> str(key_type(pa.int32(), pa.int64())), str(key_type(pa.int32(), pa.decimal128(5, 2)))
    ('int64', 'decimal128(12, 2)')
    """
    decimals = [_as_decimal(kind) for kind in (left, right)]
    if left != right and (is_decimal(left) or is_decimal(right)) and decimals[0] and decimals[1]:
        scale = max(each[1] for each in decimals if each)
        digits = max(each[0] - each[1] for each in decimals if each)
        if scale + digits <= 38:
            return pa.decimal128(scale + digits, scale)
        raise UserError(f"keys of types {name(left)} and {name(right)} have no common type: CAST one of them")
    try:
        return common_type(left, right)
    except Unsupported:
        raise UserError(
            f"keys of types {name(left)} and {name(right)} cannot be compared: CAST one to the type of the other"
        ) from None


def _as_decimal(kind: pa.DataType) -> tuple[int, int] | None:
    if is_decimal(kind):
        return kind.precision, kind.scale
    return (_DIGITS[kind], 0) if is_integral(kind) else None
