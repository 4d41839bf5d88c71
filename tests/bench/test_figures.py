from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.bench.figures import extremes, quartiles, ratio, slope

VALUES = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=50)


@given(VALUES)
def test_a_spread_holds_its_middle(values):
    for spread in (quartiles(values), extremes(values)):
        assert min(values) <= spread.low <= spread.middle <= spread.high <= max(values)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=8))
def test_a_ratio_lies_within_its_spread_and_turns_around(rounds):
    ours, theirs = [one for one, _ in rounds], [other for _, other in rounds]
    spread, back = ratio(ours, theirs), ratio(theirs, ours)
    assert spread.low <= spread.middle <= spread.high
    assert spread.middle * back.middle == pytest.approx(1.0)
    assert spread.low * back.high == pytest.approx(1.0)


def test_a_ratio_of_rounds_ignores_what_slows_both_sides():
    assert ratio([[1.0], [10.0], [100.0]], [[2.0], [20.0], [200.0]]).ends == pytest.approx((0.5, 0.5))


@given(st.floats(-100, 100), st.floats(-1e3, 1e3), st.integers(3, 40))
def test_a_slope_is_found_exactly_without_noise(steep, base, count):
    times = np.arange(count) / 7
    assert slope(times, base + steep * times).middle == pytest.approx(steep, abs=1e-6)


def test_the_band_of_a_slope_holds_the_truth_about_as_often_as_it_says():
    draw = np.random.default_rng(3)
    times = np.arange(80.0)
    held = 0
    for _ in range(300):
        band = slope(times, 5.0 + draw.normal(0.0, 2.0, 80))
        held += band.low <= 0.0 <= band.high
    assert 0.88 <= held / 300 <= 0.995


def test_noise_that_leans_on_itself_widens_the_band():
    draw = np.random.default_rng(4)
    times = np.arange(200.0)
    walk = np.zeros(200)
    for i in range(1, 200):
        walk[i] = 0.8 * walk[i - 1] + draw.normal()
    shuffled = draw.permutation(walk)
    leaning, free = slope(times, walk), slope(times, shuffled)
    assert leaning.high - leaning.low > 1.5 * (free.high - free.low)


def test_growth_beyond_noise_is_seen():
    draw = np.random.default_rng(5)
    times = np.arange(60.0)
    assert slope(times, 300 + 0.5 * times + draw.normal(0.0, 2.0, 60)).low > 0.0


def test_what_was_not_measured_has_no_figure():
    with pytest.raises(ValueError, match="nothing was measured"):
        quartiles([])
    with pytest.raises(ValueError, match="three samples"):
        slope([1.0, 1.0, 1.0], [1.0, 2.0, 3.0])
