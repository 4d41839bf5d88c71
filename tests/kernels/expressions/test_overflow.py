from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from freshet.kernels.expressions.overflow import add, multiply, subtract

MIN, MAX = -(2**63), 2**63 - 1
PYTHON: dict[Callable[..., Any], Callable[[int, int], int]] = {
    add: lambda a, b: a + b,
    subtract: lambda a, b: a - b,
    multiply: lambda a, b: a * b,
}
BIGINTS = st.integers(MIN, MAX) | st.sampled_from([0, 1, -1, MIN, MAX, 2**32, 2**31, 3037000500])


@pytest.mark.parametrize("kernel", PYTHON)
@given(pairs=st.lists(st.tuples(BIGINTS, BIGINTS), min_size=1))
@example(pairs=[(-1, MIN), (MIN, -1), (MIN, MIN), (MAX, MAX), (0, MIN), (1, MIN)])
def test_bigints_are_right_or_said_to_be_wrong(kernel: Callable[..., Any], pairs: list[tuple[int, int]]) -> None:
    left, right = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    for a, b in ((left, right), (left, right[0]), (left[0], right)):
        with np.errstate(all="ignore"):
            result, wrong = kernel(a, b)
        exact = [PYTHON[kernel](int(x), int(y)) for x, y in zip(*np.broadcast_arrays(a, b), strict=True)]
        misses = [not MIN <= value <= MAX for value in exact]
        assert (np.zeros(len(exact), bool) if wrong is None else wrong).tolist() == misses
        assert all(miss or value == got for value, got, miss in zip(exact, result.tolist(), misses, strict=True))


@pytest.mark.parametrize("kernel", PYTHON)
def test_every_pair_of_tinyints(kernel: Callable[..., Any]) -> None:
    numbers = np.arange(-128, 128).astype(np.int8)
    left, right = (side.ravel() for side in np.meshgrid(numbers, numbers))
    result, wrong = kernel(left, right)
    exact = PYTHON[kernel](left.astype(np.int64), right.astype(np.int64))  # type: ignore[arg-type]
    assert result.dtype == np.int8
    np.testing.assert_array_equal(wrong, (exact < -128) | (exact > 127))
    np.testing.assert_array_equal(result[~wrong], exact[~wrong])  # type: ignore[index]
