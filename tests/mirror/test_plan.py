"""Plans are optimal: by the printed table, by the conditions of optimality, and by a general solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import lambertw

from freshet.mirror import Elements, freshness_of, perceived_freshness, plan
from freshet.mirror.again import frequencies_at, start_after
from freshet.mirror.kkt import kkt_residual, marginal_gains
from freshet.mirror.orders import ORDERS, OrderName
from freshet.mirror.orders.lambert import inverse_log_excess
from freshet.mirror.search import SearchStart
from freshet.model import UserError

NAMES: tuple[OrderName, ...] = ("fixed", "random", "poisson")


@pytest.mark.parametrize(
    ("worth", "printed"),
    [
        ((1, 1, 1, 1, 1), (1.15, 1.36, 1.35, 1.14, 0.00)),
        ((1, 2, 3, 4, 5), (0.33, 0.67, 1.00, 1.33, 1.67)),
        ((5, 4, 3, 2, 1), (1.69, 1.83, 1.49, 0.00, 0.00)),  # 1.68 in print
    ],
)
def test_table_2_1(worth: tuple[float, ...], printed: tuple[float, ...]) -> None:
    made = plan(Elements.of([1, 2, 3, 4, 5], worth), 5.0)
    assert made.frequencies == pytest.approx(printed, abs=0.006)


@st.composite
def mirrors(draw: st.DrawFn) -> tuple[Elements, float, OrderName]:
    """Elements over up to 20 orders of magnitude, some without changes or worth."""
    exponents = st.floats(-10.0, 10.0)
    count = draw(st.integers(1, 12))

    def column(*, zero: bool) -> list[float]:
        powers = exponents.map(lambda power: 10.0**power)
        return draw(st.lists(st.just(0.0) | powers if zero else powers, min_size=count, max_size=count))

    elements = Elements.of(column(zero=True), column(zero=True), column(zero=False))
    return elements, 10.0 ** draw(st.floats(-8.0, 8.0)), draw(st.sampled_from(NAMES))


@given(mirrors())
def test_conditions_of_optimality(case: tuple[Elements, float, OrderName]) -> None:
    elements, budget, order = case
    made = plan(elements, budget, order=order)
    assert kkt_residual(elements, made, budget, order=order) <= 1e-6
    if not ((elements.rates > 0.0) & (elements.worth > 0.0)).any():
        assert made.spent == 0.0


@given(mirrors(), st.data())
def test_conditions_of_optimality_above_floors(case: tuple[Elements, float, OrderName], data: st.DataObject) -> None:
    elements, budget, order = case
    shares = data.draw(st.lists(st.just(0.0) | st.floats(1e-6, 1.0), min_size=len(elements), max_size=len(elements)))
    least = 0.9 * budget * np.array(shares) / len(elements) / elements.sizes
    made = plan(elements, budget, order=order, least=least)
    assert (made.frequencies >= least * (1.0 - 1e-12)).all()
    assert made.spent <= budget * (1.0 + 1e-9)
    if made.mu > 0.0:
        assert kkt_residual(elements, made, budget, order=order, least=least) <= 1e-6


starts = st.builds(
    SearchStart, st.floats(1e-12, 1e12), st.none() | st.floats(-1e3, 1e3), st.none() | st.floats(-1e12, 1e12)
)


@given(mirrors(), starts)
def test_where_the_search_begins_does_not_matter(case: tuple[Elements, float, OrderName], start: SearchStart) -> None:
    elements, budget, order = case
    warm = plan(elements, budget, order=order, start=start)
    assert warm.perceived == pytest.approx(plan(elements, budget, order=order).perceived, abs=1e-6)
    assert kkt_residual(elements, warm, budget, order=order) <= 1e-6


@pytest.mark.parametrize("order", NAMES)
@pytest.mark.parametrize("count", [2, 10, 50])
def test_a_general_solver_finds_nothing_better(order: OrderName, count: int) -> None:
    rng = np.random.default_rng(count)
    elements = Elements.of(rng.gamma(2.0, 1.0, count), rng.random(count), rng.uniform(0.5, 2.0, count))
    budget = 0.5 * count
    made = plan(elements, budget, order=order)

    def lack(frequencies: np.ndarray) -> float:
        return -float(elements.worth @ freshness_of(elements, np.maximum(frequencies, 0.0), order))

    def slopes(frequencies: np.ndarray) -> np.ndarray:
        return -marginal_gains(elements, np.maximum(frequencies, 1e-9), order) * elements.sizes

    limit = {"type": "eq", "fun": lambda f: elements.sizes @ f - budget, "jac": lambda f: elements.sizes}
    start = np.full(count, budget / elements.sizes.sum())
    found = minimize(
        lack,
        start,
        method="SLSQP",
        jac=slopes,
        bounds=[(0.0, None)] * count,
        constraints=limit,
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success
    assert -found.fun <= -lack(made.frequencies) + 1e-9
    assert -found.fun == pytest.approx(-lack(made.frequencies), rel=1e-4)


@pytest.mark.parametrize("order", NAMES)
def test_the_gain_is_the_derivative(order: OrderName) -> None:
    each = ORDERS[order]
    r = np.geomspace(1e-3, 50.0, 200)
    step = 1e-5 * r
    derivative = (each.freshness(r + step) - each.freshness(r - step)) / (2 * step)
    assert each.gain(r) == pytest.approx(-r * r * derivative, rel=1e-4, abs=1e-9)
    assert each.gain(r) + each.lack(r) == pytest.approx(1.0)
    slope = (each.gain(r + step) - each.gain(r - step)) / (2 * step)
    assert each.slope(r) == pytest.approx(slope, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("order", NAMES)
def test_the_inverse_gives_back_r(order: OrderName) -> None:
    each = ORDERS[order]
    r = np.geomspace(1e-9, 30.0, 500)
    assert each.inverse(each.gain(r), each.lack(r)) == pytest.approx(r, rel=1e-7)


def test_lambert_agrees_with_scipy() -> None:
    excess = np.geomspace(1e-3, 500.0, 2000)
    theirs = -1.0 - lambertw(-np.exp(-1.0 - excess), -1).real
    assert inverse_log_excess(excess) == pytest.approx(theirs, rel=1e-9)


def test_lambert_keeps_the_digits_that_the_argument_of_w_loses() -> None:
    tiny = inverse_log_excess(np.array([1e-30]))
    assert tiny == pytest.approx(np.sqrt(2e-30), rel=1e-12)
    assert -1.0 - lambertw(-np.exp(-1.0 - 1e-30), -1).real != pytest.approx(np.sqrt(2e-30), rel=0.1)


def test_a_fixed_order_is_fresher_than_a_random_one_and_that_fresher_than_poisson() -> None:
    elements = Elements.of(np.random.default_rng(1).gamma(2.0, 1.0, 100))
    fixed, random, poisson = (plan(elements, 50.0, order=order).perceived for order in NAMES)
    assert fixed > random > poisson


def test_one_element_gets_everything() -> None:
    for budget in (1e-9, 1.0, 1e9):
        made = plan(Elements.of([3.0], [0.2], [4.0]), budget)
        assert made.frequencies == pytest.approx([budget / 4.0])


def test_what_never_changes_or_is_worth_nothing_is_not_polled() -> None:
    made = plan(Elements.of([0.0, 1.0, 1.0], [1.0, 0.0, 1.0]), 2.0)
    assert made.frequencies.tolist() == pytest.approx([0.0, 0.0, 2.0])
    nothing = plan(Elements.of([0.0, 1.0], [1.0, 0.0]), 2.0)
    assert (nothing.spent, nothing.mu, nothing.perceived) == (0.0, 0.0, 1.0)


def test_equal_elements_on_the_verge_share_a_small_budget() -> None:
    """At so small a budget no float tells the gain of these elements from 1."""
    made = plan(Elements.of([1.0, 1.0, 1.0, 2.0]), 1e-3)
    assert made.frequencies == pytest.approx([1e-3 / 3] * 3 + [0.0])


@pytest.mark.parametrize(
    ("columns", "budget", "sentence"),
    [
        (([1.0, np.nan],), 1.0, "row 1: the change rate is nan"),
        (([1.0, -1.0],), 1.0, "row 1: the change rate is -1.0"),
        (([1.0, np.inf],), 1.0, "row 1: the change rate is inf"),
        (([1.0, 1.0], [-0.5, 1.0]), 1.0, "row 0: the worth is -0.5"),
        (([1.0, 1.0], [1.0, 1.0], [1.0, 0.0]), 1.0, "row 1: the size is 0.0"),
        (([1.0, 1.0], [1.0]), 1.0, "2 change rates, but 1 values of worth"),
        (([1.0],), 0.0, "the budget is 0.0"),
        (([1.0],), -1.0, "the budget is -1.0"),
        (([1.0],), np.nan, "the budget is nan"),
    ],
)
def test_nonsense_is_refused(columns: tuple[list[float], ...], budget: float, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        plan(Elements.of(*columns), budget)


def test_worth_counts_and_sizes_cost() -> None:
    rng = np.random.default_rng(3)
    elements = Elements.of(rng.gamma(4.0, 0.5, 200), 1.0 / np.arange(1, 201), 1.0 + rng.pareto(1.5, 200))
    blind = plan(Elements.of(elements.rates, elements.worth), 100.0).frequencies
    scaled = blind * 100.0 / float(elements.sizes @ blind)
    assert plan(elements, 100.0).perceived > perceived_freshness(elements, scaled)


@pytest.mark.parametrize("floors", [False, True])
def test_a_plan_made_again_is_the_plan_made_anew(floors: bool) -> None:
    rng, budget = np.random.default_rng(5), 25_000.0
    changed = Elements.of(rng.gamma(1.0, 2.0, 50_000), 1.0 / np.arange(1, 50_001))
    least = np.where(rng.random(50_000) < 0.1, 0.5, 0.0) if floors else None
    again = plan(changed, budget, least=least)
    for _ in range(3):
        rows = rng.choice(50_000, 500, replace=False)
        rates, worth = changed.rates.copy(), changed.worth.copy()
        rates[rows] = rng.gamma(1.0, 2.0, 500) * (rng.random(500) < 0.9)
        worth[rows[:50]] = 0.0
        changed = Elements.of(rates, worth)
        start = start_after(again, changed, least)
        again, anew = plan(changed, budget, least=least, start=start), plan(changed, budget, least=least)
        assert again.perceived == pytest.approx(anew.perceived, abs=1e-9)
        assert again.evaluations < anew.evaluations
        assert kkt_residual(changed, again, budget, least=least) <= 1e-6


@pytest.mark.parametrize("floors", [False, True])
def test_few_changes_tell_what_is_spent(floors: bool) -> None:
    """At the mu of the plan before, by a pass over all elements."""
    rng, count = np.random.default_rng(7), 10_000
    elements = Elements.of(rng.gamma(1.0, 2.0, count), 1.0 / np.arange(1, count + 1), 1.0 + rng.pareto(1.5, count))
    least = np.where(rng.random(count) < 0.1, 0.05, 0.0) if floors else None
    before = plan(elements, 0.5 * count, least=least)
    rates, sizes = elements.rates.copy(), elements.sizes.copy()
    rates[:100], sizes[50:150] = rates[:100] * 3.0, sizes[50:150] * 2.0
    changed = Elements.of(rates, elements.worth, sizes)
    there = np.maximum(frequencies_at(changed, before.mu), 0.0 if least is None else least)
    assert float(sizes @ there) > 1.001 * before.spent
    assert start_after(before, changed, least).spent == pytest.approx(float(sizes @ there), rel=1e-6)


def test_many_changes_and_new_elements_do_not_tell_it() -> None:
    before = plan(Elements.of([1.0, 2.0, 3.0]), 2.0)
    for rates in ([9.0, 2.0, 3.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0]):
        changed = Elements.of(rates)
        start = start_after(before, changed)
        assert start == SearchStart(before.mu, before.slope)
        assert plan(changed, 2.0, start=start).frequencies == pytest.approx(plan(changed, 2.0).frequencies, rel=1e-5)


def test_figure_2_1() -> None:
    """An element that changes 1.2 times a period gets nothing at p = mu, and some at p = 2 mu."""
    low, same, high = frequencies_at(Elements.of([1.2] * 3, [0.5, 1.0, 2.0]), mu=1.0)
    assert (low, same) == (0.0, 0.0)
    assert high > 0.5
