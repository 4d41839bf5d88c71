"""Columns of ordered keys as numbers, and the bytes of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def key_numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Ordered keys as numbers: times as microseconds.

    >>> key_numbers(pa.chunked_array([pa.array([7, 8], pa.int16())])).tolist()
    [7, 8]
    """
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", tz=column.type.tz))
    numbers: npt.NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return numbers


def varying_bytes(table: pa.Table) -> npt.NDArray[np.int64]:
    """The bytes of the texts, binaries, lists and maps of each row.

    >>> varying_bytes(pa.table({"n": [1, 2, 3], "t": ["a", None, "abc"], "l": [[1, 2], [], None]})).tolist()
    [17, 0, 3]
    """
    total = np.zeros(len(table), np.int64)
    for column in table.columns:
        if len(column) and not is_fixed(column.type):
            total += _bytes_of(column.combine_chunks())
    return total


def is_fixed(kind: pa.DataType) -> bool:
    """Whether all values of a type take the same number of bytes."""
    if pa.types.is_struct(kind):
        return all(is_fixed(field.type) for field in kind)
    kinds = (pa.types.is_primitive, pa.types.is_null, pa.types.is_fixed_size_binary, pa.types.is_decimal)
    return any(each(kind) for each in kinds)


def _bytes_of(array: pa.Array) -> npt.NDArray[np.int64]:
    """The bytes of each value of an array."""
    kind = array.type
    if is_fixed(kind):
        return np.full(len(array), _width(kind), np.int64)
    if pa.types.is_struct(kind):
        return np.add.reduce([_bytes_of(array.field(place)) for place in range(kind.num_fields)])  # type: ignore[no-any-return]
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        ends = np.cumsum(np.concatenate([[0], _bytes_of(array.values)]))
        offsets = array.offsets.to_numpy()
        found: npt.NDArray[np.int64] = np.where(array.is_valid(), ends[offsets[1:]] - ends[offsets[:-1]], 0)
        return found
    lengths: npt.NDArray[np.int64] = pc.binary_length(array).fill_null(0).cast(pa.int64()).to_numpy()
    return lengths


def _width(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return sum(_width(field.type) for field in kind)
    return 0 if pa.types.is_null(kind) else -(-int(kind.bit_width) // 8)
