"""Rows with equal keys get equal numbers; keys are equal if they are equal in Spark's GROUP BY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freshet.kernels.expressions.arrow import decode
from freshet.kernels.folds.arrays import Ints, arrow
from freshet.model import UserError

_FEW: Final = 1 << 16
"""Number of group numbers that may be unused without harm."""


def check_key(schema: pa.Schema, column: str) -> None:
    """Refuses keys that cannot be compared."""
    kind = schema.field(column).type
    if pa.types.is_nested(kind):
        raise UserError(f"column {column} has type {kind}, by which rows cannot be grouped or joined")


def canonical(array: pa.Array) -> pa.Array:
    """Gives equal floating-point numbers equal bits: there is one NaN and no negative zero.

    >>> canonical(pa.array([-0.0, None])).to_pylist()
    [0.0, None]
    """
    if not pa.types.is_floating(array.type):
        return array
    value = decode(array)
    return arrow(_canonical(value.values), array.type, value.valid)


def encode_groups(columns: Sequence[pa.Array | Ints], rows: int) -> tuple[Ints, int]:
    """Group numbers of the rows, and an upper bound of these numbers that is proportional to the rows.

    >>> encode_groups([pa.array(["a", "b", None, "a"]), np.array([1, 1, 1, 1])], 4)[0].tolist()
    [0, 1, 2, 0]
    """
    codes, size = np.zeros(rows, np.int64), 1
    for column in columns:
        more, count = _column(column)
        if size * count > 2**62:
            codes, size = _dense(codes)
        codes, size = (codes * count + more, size * count) if size > 1 else (more, count)
    return _dense(codes) if size > max(4 * rows, _FEW) else (codes, size)


def used(codes: Ints, size: int) -> tuple[Ints, int]:
    """The same groups, numbered without gaps."""
    seen = np.bincount(codes, minlength=size) > 0
    if seen.all():
        return codes, size
    numbers = np.cumsum(seen) - 1
    return numbers[codes], int(numbers[-1]) + 1 if len(numbers) else 0


def examples(codes: Ints, size: int) -> Ints:
    """For each group the number of one of its rows; entries of unused group numbers mean nothing."""
    rows = np.zeros(size, np.int64)
    rows[codes] = np.arange(len(codes))
    return rows


def _column(column: pa.Array | Ints) -> tuple[Ints, int]:
    if isinstance(column, np.ndarray):
        return _integers(column)
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int64), 1
    if pa.types.is_floating(kind):
        value = decode(column)
        bits = _canonical(value.values.astype(np.float64)).view(np.int64)
        return _words(arrow(bits, pa.int64(), value.valid))
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind):
        value = decode(column)
        if isinstance(value.values, np.ndarray):
            return _integers(value.values.astype(np.int64, copy=False), value.valid, column)
    return _words(column)


def _integers(values: Ints, valid: npt.NDArray[np.bool_] | None = None, column: Any = None) -> tuple[Ints, int]:
    """The distance from the smallest number, if the numbers lie close together."""
    some = values if valid is None else values[valid]
    if not len(some):
        return np.zeros(len(values), np.int64), 1
    low, high = int(some.min()), int(some.max())
    if high - low > max(2 * len(values), _FEW):
        return _words(pa.array(values) if column is None else column)
    if valid is None:
        return values - low, high - low + 1
    return np.where(valid, values - low, high - low + 1), high - low + 2


def _words(column: pa.Array) -> tuple[Ints, int]:
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), max(len(encoded.dictionary), 1)


def _dense(codes: Ints) -> tuple[Ints, int]:
    return _words(pa.array(codes))


def _canonical(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = values + values.dtype.type(0)
    numbers[np.isnan(numbers)] = np.nan
    return numbers
