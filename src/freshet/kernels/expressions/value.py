"""What an expression evaluates to: a column of values with the places where it is NULL or failed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.int64]


class Value:
    """A column in memory.

    Args:
        values: A NumPy array, or for types without one a :class:`~freshet.kernels.expressions.text.Text` or Arrow
            array. Values at NULL mean nothing.
        valid: The rows that are not NULL; None: no value is NULL, so that no masks are computed.
        errors: Number of evaluation errors per row; None: there were none.
        array: The Arrow array that it was decoded from, if it can be passed on unchanged.
    """

    __slots__ = ("array", "errors", "valid", "values")

    def __init__(
        self,
        values: Any,
        valid: Mask | None = None,
        errors: npt.NDArray[np.int32] | None = None,
        array: pa.Array | None = None,
    ) -> None:
        self.values = values
        self.valid = valid
        self.errors = errors
        self.array = array


def both(left: Mask | None, right: Mask | None) -> Mask | None:
    """Where neither of two columns is NULL."""
    if left is None:
        return right
    return left if right is None else left & right


def total(left: npt.NDArray[np.int32] | None, right: npt.NDArray[np.int32] | None) -> npt.NDArray[np.int32] | None:
    """The errors of two parts of an expression, added up."""
    if left is None:
        return right
    return left if right is None else left + right


def fail_where(value: Value, wrong: Mask) -> Value:
    """The value with NULL and one more error where an operation went wrong on arguments that are not NULL."""
    if value.valid is not None:
        wrong = wrong & value.valid
    if not np.count_nonzero(wrong):
        return value
    return Value(value.values, both(value.valid, ~wrong), total(value.errors, wrong.astype(np.int32)))


def truth(value: Value) -> Mask:
    """Where a boolean column is TRUE, neither FALSE nor NULL."""
    values: Mask = value.values
    return values if value.valid is None else values & value.valid
