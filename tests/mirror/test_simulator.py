"""Simulated mirrors agree with the formulas."""

from __future__ import annotations

import numpy as np
import pytest

from freshet.mirror import Elements, ages_of, perceived_freshness, plan
from freshet.mirror.measures import weighted_mean
from freshet.mirror.orders import OrderName
from freshet.mirror.simulator import ChangingElements, MirrorWorkload, watch


@pytest.mark.parametrize("order", ["fixed", "random", "poisson"])
def test_events_agree_with_the_formula(order: OrderName) -> None:
    bed = MirrorWorkload(objects=100, updates=200.0, syncs=50.0, theta=1.0, seed=3)
    elements = bed.elements()
    made = plan(elements, bed.syncs, order=order)
    seen = watch(elements, made.frequencies, periods=2000.0, order=order, accesses=40_000, seed=4)
    assert seen.perceived == pytest.approx(made.perceived, abs=0.01)
    assert seen.accesses == pytest.approx(made.perceived, abs=0.015)
    assert seen.general == pytest.approx(made.general, abs=0.01)
    polled = made.frequencies > 0.0
    age = weighted_mean(ages_of(elements, made.frequencies, order)[polled], elements.worth[polled])
    assert seen.age == pytest.approx(age, rel=0.05)


def test_the_order_that_is_not_used_would_be_noticed() -> None:
    elements = Elements.of([1.0])
    seen = watch(elements, np.array([1.0]), periods=5000.0, order="poisson")
    assert abs(seen.perceived - perceived_freshness(elements, np.array([1.0]))) > 0.05


def test_workloads_are_those_of_the_tables() -> None:
    bed = MirrorWorkload(theta=1.0, deviation=1.0, sizes="aligned", rates="aligned", seed=5)
    elements = bed.elements()
    assert float(elements.rates.sum()) == pytest.approx(bed.updates)
    assert float(elements.rates.std()) == pytest.approx(1.0, abs=0.1)
    assert float(elements.sizes.mean()) == pytest.approx(1.0)
    assert elements.worth[0] / elements.worth[9] == pytest.approx(10.0)
    assert (np.diff(elements.rates) <= 0.0).all()
    assert (np.diff(elements.sizes) <= 0.0).all()


def test_drifting_elements_change_by_both_rates() -> None:
    world = ChangingElements(np.full(4000, 1.0), seed=6)
    for element in range(4000):
        world.poll(element, 0.0)
    world.drift(np.full(4000, 0.0), 0.5)
    changed = sum(world.poll(element, 100.0) for element in range(4000))
    assert changed / 4000 == pytest.approx(-np.expm1(-0.5), abs=0.03)
