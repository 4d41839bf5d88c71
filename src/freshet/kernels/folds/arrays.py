"""Between Arrow columns and the NumPy arrays that folds compute with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshet.kernels.expressions.arrow import encode, one_array
from freshet.kernels.expressions.value import Mask, Value

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def flat(table: pa.Table, column: str) -> pa.Array:
    """A column in one piece."""
    return one_array(table.column(column))


def arrow(values: npt.NDArray[Any], kind: pa.DataType, valid: Mask | None = None) -> pa.Array:
    """An Arrow array of numbers, of a type with the same memory layout.

    >>> arrow(np.array([1, 2]), pa.timestamp("us"), np.array([True, False])).null_count
    1
    """
    return encode(Value(values, None if valid is None or valid.all() else valid), kind)


def join(arrays: Sequence[pa.Array]) -> pa.Array:
    """Joins several arrays of one type to one array."""
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def select(table: pa.Table, keep: Mask | None) -> pa.Table:
    """The rows that are kept; None: all."""
    if keep is None or keep.all():
        return table
    return table.filter(pa.array(keep))


def take(array: pa.Array, index: Ints) -> pa.Array:
    """The rows of an array with the given numbers."""
    return array.take(pa.array(index))


def repeat(counts: Ints) -> Ints:
    """Each position, repeated as often as its count says.

    >>> repeat(np.array([2, 0, 1])).tolist()
    [0, 0, 2]
    """
    return np.repeat(np.arange(len(counts)), counts)


def expand(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """The members of each range ``[lo, hi)``, and the range that each belongs to.

    >>> [each.tolist() for each in expand(np.array([4, 0]), np.array([6, 1]))]
    [[4, 5, 0], [0, 0, 1]]
    """
    counts = hi - lo
    ids = repeat(counts)
    return np.arange(len(ids)) - np.repeat(np.cumsum(counts) - counts - lo, counts), ids
