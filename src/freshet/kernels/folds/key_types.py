"""The type in which keys of two inputs are compared."""

from __future__ import annotations

import pyarrow as pa

from freshet.kernels.expressions.types import is_decimal, name, promoted
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.model import UserError
from freshet.model.numbers import as_decimal, common_type


def key_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The least common type, in which Spark compares them.

    >>> str(key_type(pa.int32(), pa.int64())), str(key_type(pa.int32(), pa.decimal128(5, 2)))
    ('int64', 'decimal128(12, 2)')
    """
    if is_decimal(left) or is_decimal(right):
        kind = common_type(left, right)
        if is_decimal(kind) and kind.scale < max(as_decimal(left).scale, as_decimal(right).scale):
            raise UserError(f"keys of types {name(left)} and {name(right)} have no common type: CAST one of them")
        if is_decimal(kind):
            return kind
    try:
        return promoted(left, right)
    except Unsupported:
        raise UserError(
            f"keys of types {name(left)} and {name(right)} cannot be compared: CAST one to the type of the other"
        ) from None
