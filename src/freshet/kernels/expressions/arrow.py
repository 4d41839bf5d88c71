"""Conversions between Arrow arrays and values, with as few copies as possible."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.text import Text, gather
from freshet.kernels.expressions.types import BOOLEAN, DTYPES, STRING
from freshet.kernels.expressions.value import Index, Mask, Value

_from_buffers: Final = pa.Array.from_buffers


def decode(array: pa.Array, encode: bool = False) -> Value:
    """The value of an Arrow array; numbers and times are views of its memory.

    Args:
        array: A column of the input.
        encode: Whether text is worth a dictionary (see :class:`~freshet.kernels.expressions.text.Text`).

    >>> decode(pa.array([1, 2, 3])).values.tolist()
    [1, 2, 3]
    """
    valid = _valid(array)
    dtype = DTYPES.get(array.type)
    if dtype is None:
        return Value(Text(array, encode) if array.type == STRING else array, valid, array=array)
    data = array.buffers()[1]
    if data is None:
        return Value(np.zeros(len(array), dtype), valid, array=array)
    first, end = array.offset, array.offset + len(array)
    if array.type == BOOLEAN:
        return Value(_bits(data, first, end), valid, array=array)
    return Value(np.frombuffer(data, dtype, end)[first:], valid, array=array)


def encode(value: Value, kind: pa.DataType) -> pa.Array:
    """The Arrow array of a value."""
    if value.array is not None:
        return value.array
    values, valid = value.values, value.valid
    if type(values) is not np.ndarray:
        return values.array if type(values) is Text else values
    if values.dtype.char == "?":
        values, rows = np.packbits(values, bitorder="little"), len(values)
    else:
        values, rows = np.ascontiguousarray(values), len(values)
    if valid is None:
        return _from_buffers(kind, rows, [None, pa.py_buffer(values)], 0)
    nulls = np.packbits(valid, bitorder="little")
    return _from_buffers(kind, rows, [pa.py_buffer(nulls), pa.py_buffer(values)])


def take(value: Value, index: Index) -> Value:
    """The rows of a value with the given numbers, without their errors, which were counted before."""
    values, valid = value.values, value.valid
    # ``take`` is a third quicker than an index.
    if valid is not None:
        valid = valid.take(index)
    if type(values) is np.ndarray:
        return Value(values.take(index), valid)
    if type(values) is Text:
        return Value(values.take(index), valid)
    return Value(gather(values, index), valid)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _valid(array: pa.Array) -> Mask | None:
    if array.null_count == 0:
        return None
    nulls = array.buffers()[0]
    if nulls is None:  # the null type has no bitmap
        return np.zeros(len(array), np.bool_)
    return _bits(nulls, array.offset, array.offset + len(array))


def _bits(data: pa.Buffer, first: int, end: int) -> Mask:
    whole = np.frombuffer(data, np.uint8, (end + 7) // 8 - first // 8, first // 8)
    return np.unpackbits(whole, bitorder="little", count=end - first // 8 * 8)[first % 8 :].view(np.bool_)
