"""Costs told apart by least squares (RT §4.1)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.quality.periodic import OperatorCost


def test_two_selectivities_tell_the_predicate_from_the_output() -> None:
    cost = OperatorCost()
    cost.observe([1000], 200, 180e-6)
    cost.observe([1000], 600, 220e-6)
    assert cost.per_row[0] == pytest.approx(0.16e-6, rel=1e-3)
    assert cost.per_output == pytest.approx(0.1e-6, rel=1e-3)


def test_one_run_predicts_itself() -> None:
    cost = OperatorCost()
    cost.observe([1000], 200, 180e-6)
    assert cost.seconds([1000], 200) == pytest.approx(180e-6, rel=1e-3)
    assert cost.seconds([2000], 400) == pytest.approx(360e-6, rel=1e-3)


@given(
    per_left=st.floats(1e-7, 1e-5),
    per_right=st.floats(1e-7, 1e-5),
    per_pair=st.floats(1e-7, 1e-6),
    seed=st.integers(0, 1000),
)
def test_a_join_is_learned_from_its_runs(per_left: float, per_right: float, per_pair: float, seed: int) -> None:
    random, cost = np.random.default_rng(seed), OperatorCost(2)
    for _ in range(12):
        left, right, pairs = (int(each) for each in random.integers(500, 5000, 3))
        cost.observe([left, right], pairs, left * per_left + right * per_right + pairs * per_pair)
    wanted = 4000 * per_left + 4000 * per_right + 1600 * per_pair
    assert cost.seconds([4000, 4000], 1600) == pytest.approx(wanted, rel=0.02)


def test_costs_that_change_are_followed() -> None:
    cost = OperatorCost()
    for number in range(200):
        each = 1e-6 if number < 100 else 3e-6
        cost.observe([1000], 100 + 5 * (number % 40), 1000 * each)
    assert cost.seconds([1000], 200) == pytest.approx(3e-3, rel=0.02)


@given(st.lists(st.tuples(st.integers(1, 10_000), st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=1, max_size=30))
def test_no_cost_is_below_zero(runs: list[tuple[int, float, float]]) -> None:
    cost = OperatorCost()
    for rows, share, seconds in runs:
        cost.observe([rows], rows * share, seconds)
    assert min(*cost.per_row, cost.per_output) >= 0.0


def test_cold_first_runs_are_forgotten() -> None:
    cost = OperatorCost()
    cost.observe([1000], 200, 0.5)
    cost.observe([1000], 200, 180e-6)
    assert cost.seconds([1000], 200) == pytest.approx(180e-6, rel=1e-3)


def test_an_empty_run_teaches_nothing() -> None:
    cost = OperatorCost()
    cost.observe([0], 0, 1.0)
    assert not cost.learned
