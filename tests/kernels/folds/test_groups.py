"""Groups, orders and places of sorted rows, also where numbers are too large to be packed into one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.folds.aggregates import group_key

from freshet.kernels.folds.groups import encode_groups, used
from freshet.kernels.folds.sorting import Runs, running_maximum, sort_rows

NAN = float("nan")
COLUMNS = {
    pa.int64(): st.none() | st.sampled_from([0, 1, -(2**63), 2**63 - 1]),
    pa.int8(): st.none() | st.integers(-128, 127),
    pa.float32(): st.none() | st.sampled_from([0.0, -0.0, NAN, -NAN, 1.5]),
    pa.float64(): st.none() | st.sampled_from([0.0, -0.0, NAN, -NAN, 1.5]),
    pa.string(): st.none() | st.sampled_from(["", "a", "é"]),
    pa.binary(): st.none() | st.sampled_from([b"", b"a"]),
    pa.bool_(): st.none() | st.booleans(),
    pa.date32(): st.none() | st.dates(),
    pa.timestamp("us"): st.none() | st.datetimes(),
    pa.null(): st.none(),
}
HUGE = st.sampled_from([-(2**63), -(2**62), -1, 0, 1, 5, 2**62, 2**63 - 1])


@settings(deadline=None)
@given(st.data(), st.integers(0, 12))
def test_rows_with_equal_keys_have_equal_numbers(data: Any, rows: int) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(COLUMNS)), max_size=3))
    columns = [data.draw(st.lists(COLUMNS[kind], min_size=rows, max_size=rows)) for kind in kinds]
    codes, size = used(*encode_groups([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], rows))
    keys = [tuple(group_key(value) for value in row) for row in zip(*columns, strict=True)] if kinds else [()] * rows
    assert len(codes) == rows
    assert size == len(set(keys)) or not rows
    assert len(set(zip(codes.tolist(), keys, strict=True))) == len(set(keys))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), HUGE | st.integers(-5, 5)), max_size=20), st.sampled_from([4, 70_000, 2**33])
)
def test_sorted_rows(rows: list[tuple[int, int]], size: int) -> None:
    codes = np.array([code for code, _ in rows], np.int64)
    values = np.array([value for _, value in rows], np.int64)
    order = sort_rows(codes, size, values)
    assert order.tolist() == sorted(range(len(rows)), key=lambda row: (*rows[row], row))
    ordered = [rows[row] for row in order]
    if all(a <= b for (a, _), (b, _) in pairwise(rows)):
        tops = running_maximum(codes, size, values)
        assert tops.tolist() == [max(v for c, v in rows[: n + 1] if c == code) for n, (code, _) in enumerate(rows)]
    runs = Runs(codes[order], size, values[order])
    asked = [(code, value) for code in range(4) for value in (-(2**63), -3, 0, 6, 2**63 - 1)]
    found = runs.first(*(np.array(each, np.int64) for each in zip(*asked, strict=True)))
    for (code, value), place in zip(asked, found, strict=True):
        assert place == sum(row < (code, value) for row in ordered)


@pytest.mark.parametrize("rows", [0, 1])
def test_no_keys_are_one_group(rows: int) -> None:
    assert encode_groups([], rows)[0].tolist() == [0] * rows
