"""Floors are kept at the least cost, and budgets buy what the curve says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from freshet.mirror import Elements, ages_of, freshness_of, perceived_freshness, plan
from freshet.mirror.curve import budget_curve, budget_for, budget_for_share
from freshet.mirror.floors import Floors, floors
from freshet.mirror.kkt import kkt_residual
from freshet.mirror.orders import OrderName
from freshet.mirror.simulator import MirrorWorkload
from freshet.model import UserError

NAMES: tuple[OrderName, ...] = ("fixed", "random", "poisson")
BED = MirrorWorkload(theta=1.0, seed=4)


@pytest.mark.parametrize("order", NAMES)
def test_a_floor_is_the_frequency_with_that_freshness(order: OrderName) -> None:
    elements = Elements.of(np.geomspace(1e-6, 1e6, 50))
    wanted = np.linspace(0.01, 0.99, 50)
    assert freshness_of(elements, floors(elements, freshness=wanted, order=order), order) == pytest.approx(wanted)


@pytest.mark.parametrize("order", NAMES)
def test_a_floor_is_the_frequency_with_that_age(order: OrderName) -> None:
    elements = Elements.of(np.geomspace(1e-3, 1e3, 50))
    wanted = np.geomspace(10.0, 0.1, 50)
    assert ages_of(elements, floors(elements, age=wanted, order=order), order) == pytest.approx(wanted, rel=1e-6)


def test_the_plan_above_floors_is_optimal_and_costs_freshness_elsewhere() -> None:
    elements = BED.elements()
    wanted = np.zeros(len(elements))
    wanted[-100:] = 0.2
    least = floors(elements, freshness=wanted)
    made = plan(elements, BED.syncs, least=least)
    assert (freshness_of(elements, made.frequencies)[-100:] >= 0.2 - 1e-9).all()
    assert kkt_residual(elements, made, BED.syncs, least=least) <= 1e-6
    assert made.perceived < plan(elements, BED.syncs).perceived
    naive = least + plan(elements, BED.syncs - float(least.sum())).frequencies
    assert made.perceived > perceived_freshness(elements, naive)


def test_floors_beyond_the_budget_are_refused_with_the_budget_that_they_need() -> None:
    elements = Elements.of([1.0, 1.0])
    least = floors(elements, freshness=np.array([0.9, 0.9]))
    with pytest.raises(UserError, match=f"at least {float(least.sum()):.6g}, and it is 1"):
        plan(elements, 1.0, least=least)
    made = plan(elements, float(least.sum()), least=least)
    assert made.frequencies == pytest.approx(least)


@pytest.mark.parametrize(
    ("floor", "sentence"),
    [
        ({"freshness": np.array([0.5, 1.0])}, "row 1: the least freshness is 1.0"),
        ({"freshness": np.array([np.nan, 0.5])}, "row 0: the least freshness is nan"),
        ({"age": np.array([1.0, 0.0])}, "row 1: the greatest age is 0.0"),
    ],
)
def test_impossible_floors_are_refused(floor: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        floors(Elements.of([1.0, 1.0]), **floor)


def test_more_budget_buys_more_but_less_and_less() -> None:
    points = budget_curve(BED.elements(), [50.0, 100.0, 150.0, 200.0, 250.0])
    gains = np.diff([0.0, *(point.perceived for point in points)])
    assert (gains > 0.0).all()
    assert (np.diff(gains) < 0.0).all()


def test_the_least_budget_for_a_freshness_buys_just_that() -> None:
    elements = BED.elements()
    little = budget_for_share(elements, BED.syncs, 0.95)
    assert little < 0.9 * BED.syncs
    assert plan(elements, little).perceived == pytest.approx(0.95 * plan(elements, BED.syncs).perceived, rel=1e-6)
    with pytest.raises(UserError, match="buys a perceived freshness of"):
        budget_for(elements, 0.999, most=BED.syncs)


def test_a_budget_for_a_freshness_also_buys_the_floors() -> None:
    elements = BED.elements()
    promised = Floors(np.full(len(elements), 0.4), np.full(len(elements), np.inf))
    _, needed = promised.within(elements, np.inf)
    most = 2.0 * needed
    now, *_ = budget_curve(elements, [most], floors=promised)
    enough = budget_for(elements, 0.95 * now.perceived, most=most, floors=promised)
    assert needed < enough < most
    (bought,) = budget_curve(elements, [enough], floors=promised)
    assert bought.perceived == pytest.approx(0.95 * now.perceived, rel=1e-6)
    # A freshness that the floors alone exceed costs what the floors cost.
    assert budget_for(elements, 0.1, most=most, floors=promised) == pytest.approx(needed)
    (little,) = budget_curve(elements, [0.5 * needed], floors=promised)
    assert 0.0 < little.perceived < bought.perceived
