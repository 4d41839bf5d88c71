from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.expressions.grammar import TYPES
from tests.kernels.tables import make_table, numbers, pool

from freshet.kernels.expressions.arrow import decode, encode, take
from freshet.kernels.expressions.value import Value


@st.composite
def _slices(draw: st.DrawFn) -> pa.Array:
    kind = draw(st.sampled_from(TYPES))
    cells = st.sampled_from(pool(kind)) | st.none()
    values: list[Any] = draw(st.lists(cells, max_size=40))
    array = make_table({"x": kind}, [{"x": value} for value in values]).column("x").chunk(0)
    first = draw(st.integers(0, len(values)))
    return array.slice(first, draw(st.integers(0, len(values) - first)))


@given(_slices(), st.booleans())
def test_what_is_decoded_can_be_encoded_again(array: pa.Array, nullable: bool) -> None:
    array = array if nullable else array.drop_null()
    value = decode(array)
    assert (value.valid is None) == (array.null_count == 0)
    again = encode(Value(value.values, value.valid), array.type)
    again.validate(full=True)
    assert again.type == array.type
    assert numbers(again) == numbers(array)


@given(_slices(), st.data())
def test_rows_can_be_taken(array: pa.Array, data: st.DataObject) -> None:
    index = data.draw(st.lists(st.integers(0, len(array) - 1), max_size=9)) if len(array) else []
    taken = encode(take(decode(array), np.array(index, np.int64)), array.type)
    assert numbers(taken) == [numbers(array)[row] for row in index]


def test_numbers_are_views() -> None:
    array = pa.array([1.0, 2.0, 3.0])
    assert decode(array.slice(1)).values.ctypes.data == array.buffers()[1].address + 8
