"""Between Arrow arrays and values, with as few copies as possible."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freshet.kernels.expressions.text import Text
from freshet.kernels.expressions.types import BOOLEAN, DTYPES, STRING
from freshet.kernels.expressions.value import Index, Mask, Value

_INDEX: Final = pa.int64()
_from_buffers: Final = pa.Array.from_buffers
_TAKE: Final = pc.get_function("take")
_UNCHECKED: Final = pc.TakeOptions(boundscheck=False)


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
    """The rows of a value with the given numbers; their errors are not carried along: they were counted before."""
    values, valid = value.values, value.valid
    if valid is not None:
        valid = valid[index]
    if type(values) is np.ndarray:
        return Value(values[index], valid)
    if type(values) is Text:
        return Value(values.take(index), valid)
    rows = _from_buffers(_INDEX, len(index), [None, pa.py_buffer(index)], 0)
    return Value(_TAKE.call([values, rows], _UNCHECKED), valid)


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
