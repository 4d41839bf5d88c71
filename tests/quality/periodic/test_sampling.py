"""How large samples are, and how far off they may be (RT §4.2, §5.1)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.quality.periodic import (
    OperatorCost,
    PlanStep,
    PlanTime,
    aims,
    dynamic_sizes,
    fixed_sizes,
    selectivity_error,
    time_error,
)


def plan_of(share: float = 0.2, prices: tuple[float, float, float] = (0.2, 5.0, 0.4)) -> PlanTime:
    costs = [OperatorCost.given([price * 1e-6], 0.0) for price in prices]
    names, inputs = ("select", "join", "sum"), (("s",), ("select",), ("join",))
    return PlanTime(
        tuple(PlanStep(name, each, cost, share) for name, each, cost in zip(names, inputs, costs, strict=True))
    )


def test_a_cheap_selection_that_matters_is_sampled_most() -> None:
    found = aims(plan_of(), {"s": 1000})
    assert found["select"].size / found["join"].size == pytest.approx(317.5)
    assert found["sum"].size == 0.0


def test_sizes_have_the_least_variance_for_their_price() -> None:
    """No other split of the same price gives the time less variance."""
    plan, rows = plan_of(), {"s": 1_000_000}
    found = {name: aim for name, aim in aims(plan, rows).items() if aim.size}
    total = sum(aim.size * aim.price for aim in found.values())

    def variance(share: float) -> float:
        select, join = found["select"], found["join"]
        sizes = share * total / select.price, (1.0 - share) * total / join.price
        return sum((aim.slope * aim.deviation) ** 2 / size for aim, size in zip((select, join), sizes, strict=True))

    best = found["select"].size * found["select"].price / total
    assert all(variance(best) <= variance(share) for share in np.linspace(0.01, 0.999, 200))


@given(st.floats(0.01, 0.99), st.integers(100, 100_000), st.floats(0.01, 0.2))
def test_a_dynamic_sample_stays_within_its_budget_and_within_what_is_there(
    share: float, rows: int, budget: float
) -> None:
    plan = plan_of(share)
    sizes = dynamic_sizes(plan, {"s": rows}, budget, enough=1e-6)
    entering = plan.flows({"s": rows})
    assert all(size <= np.ceil(sum(entering[name])) for name, size in sizes.items())
    spent = sum(size * step.cost.per_row[0] for step in plan.steps for size in [sizes.get(step.name, 0)])
    # Each size is rounded up to a whole tuple.
    assert spent <= budget * plan.seconds({"s": rows}) + 6e-6


def test_a_sample_is_no_larger_than_the_error_asks_for() -> None:
    plan, rows = plan_of(), {"s": 1_000_000}
    few, many = (dynamic_sizes(plan, rows, 0.5, enough) for enough in (0.05, 0.01))
    assert many["select"] == pytest.approx(25 * few["select"], rel=0.01)


def test_a_fixed_sample_has_the_same_share_of_everything() -> None:
    assert fixed_sizes(plan_of(), {"s": 1000}) == {"select": 100, "join": 20, "sum": 4}


def test_the_error_of_a_selectivity() -> None:
    assert selectivity_error(0.2, 100, 1000) == pytest.approx(0.038, abs=5e-4)
    errors = [selectivity_error(share / 10, 100, 1000) for share in range(1, 10)]
    assert errors.index(max(errors)) == 4  # it rises to 0.5 only


def test_the_error_is_that_of_samples_without_replacement() -> None:
    random = np.random.default_rng(0)
    window = np.arange(1000) < 200
    found = [random.choice(window, 100, replace=False).mean() for _ in range(4000)]
    assert np.std(found) == pytest.approx(selectivity_error(0.2, 100, 1000), rel=0.05)


def test_the_error_of_the_time_follows_from_those_of_the_selectivities() -> None:
    plan = plan_of()
    select = 1000 * (5e-6 + 0.2 * 0.4e-6) * selectivity_error(0.2, 100, 1000)
    assert time_error(plan, {"s": 1000}, {"select": [100]}) == pytest.approx(select)
    assert time_error(plan, {"s": 1000}, {}) == 0.0
