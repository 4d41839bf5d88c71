"""Ranges reduced by blocks equal ranges reduced row by row; ranks in ranges equal sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.kernels.folds.aggregates.extremes import Extreme
from freshet.kernels.folds.aggregates.moments import Moments
from freshet.kernels.folds.aggregates.sums import DoubleSum, ExactSum
from freshet.kernels.folds.aggregates.wavelet import Wavelet
from freshet.kernels.folds.windows import Windows


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 300), st.sampled_from([1 << 20, 5, 100]))
def test_windows_of_any_length(seed: int, rows: int, chunk: int) -> None:
    random = np.random.default_rng(seed)
    ends = np.sort(random.integers(0, rows + 1, (3, 50)), axis=0)
    lo, mid, hi = (each.astype(np.int64) for each in ends)
    values = random.integers(-100, 100, rows)
    sees = random.random((50, rows)) < 0.5
    windows = Windows(lo, mid, hi, lambda index, ids: sees[ids, index])
    partials: list[Any] = [ExactSum("x", pa.int64()), DoubleSum("x", pa.float64()), Extreme("x", pa.int64(), "max"),
                           Moments("x", pa.float64())]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("freshet.kernels.folds.windows.CHUNK", chunk)
        found = windows.reduce(partials, [partial.lift(pa.array(values)) for partial in partials])
        pairs = [
            (begin + n, row) for begin, _, index, ids in windows.pairs() for n, row in zip(ids, index, strict=True)
        ]
    for n in range(50):
        members = [*range(lo[n], mid[n]), *(row for row in range(mid[n], hi[n]) if sees[n, row])]
        assert sorted(row for window, row in pairs if window == n) == members
        some = values[members]
        assert found[0].arrays[0][n] == len(some)
        assert found[0].arrays[1][n] + (found[0].arrays[2][n] << 32) == some.sum()
        assert found[1].arrays[1][n] == some.sum()
        assert found[2].arrays[1][n] == (len(some) > 0)
        if len(some):
            assert found[2].arrays[0][n] == some.max()
            assert found[3].arrays[2][n] == pytest.approx(((some - some.mean()) ** 2).sum(), rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), max_size=60), st.data())
def test_ranks_in_ranges(numbers: list[int], data: Any) -> None:
    ends = [sorted(data.draw(st.tuples(*[st.integers(0, len(numbers))] * 2))) for _ in range(5)]
    lo, hi = (np.array(each, np.int64) for each in zip(*ends, strict=True))
    limits = np.array(data.draw(st.lists(st.integers(0, 70), min_size=5, max_size=5)), np.int64)
    wavelet = Wavelet(np.array(numbers, np.int64))
    parts = [numbers[a:b] for a, b in ends]
    below = [sum(number < limit for number in part) for part, limit in zip(parts, limits, strict=True)]
    assert wavelet.below(lo, hi, limits).tolist() == below
    extra = [data.draw(st.lists(st.sampled_from(numbers), max_size=3)) if numbers else [] for _ in ends]
    whole = [sorted(part + more) for part, more in zip(parts, extra, strict=True)]
    ranks = [data.draw(st.integers(0, max(len(each) - 1, 0))) for each in whole]
    ids = np.repeat(np.arange(5), [len(more) for more in extra])
    more = np.array([number for each in extra for number in each], np.int64)
    found = wavelet.smallest(lo, hi, np.array(ranks), more, ids)
    for each, rank, answer in zip(whole, ranks, found, strict=True):
        assert not each or each[rank] == answer
