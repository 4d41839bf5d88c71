"""Between Arrow columns and the NumPy arrays that folds compute with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshet.kernels.expressions.arrow import encode
from freshet.kernels.expressions.value import Mask, Value

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def flat(table: pa.Table, column: str) -> pa.Array:
    """A column in one piece."""
    chunked = table.column(column)
    return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()


def arrow(values: npt.NDArray[Any], kind: pa.DataType, valid: Mask | None = None) -> pa.Array:
    """Numbers as an Arrow array of a type with the same layout.

    >>> arrow(np.array([1, 2]), pa.timestamp("us"), np.array([True, False])).null_count
    1
    """
    return encode(Value(values, None if valid is None or valid.all() else valid), kind)


def join(arrays: Sequence[pa.Array]) -> pa.Array:
    """Several arrays of one type as one."""
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def select(table: pa.Table, keep: Mask | None) -> pa.Table:
    """The rows that are kept; None: all."""
    if keep is None or keep.all():
        return table
    return table.filter(pa.array(keep))


def take(array: pa.Array, index: Ints) -> pa.Array:
    """Rows of an array by number."""
    return array.take(pa.array(index))


def repeat(counts: Ints) -> Ints:
    """Each position as often as it counts.

    >>> repeat(np.array([2, 0, 1])).tolist()
    [0, 0, 2]
    """
    return np.repeat(np.arange(len(counts)), counts)


def expand(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """The members of each range ``[lo, hi)``, and to which range each belongs.

    >>> [each.tolist() for each in expand(np.array([4, 0]), np.array([6, 1]))]
    [[4, 5, 0], [0, 0, 1]]
    """
    counts = hi - lo
    ids = repeat(counts)
    return np.arange(len(ids)) - np.repeat(np.cumsum(counts) - counts - lo, counts), ids
