"""The time of a plan (RT §4.1.2, Eq. 1)."""

from __future__ import annotations

import pytest

from freshet.quality.periodic import OperatorCost, PlanStep, PlanTime, QueryModel
from freshet.quality.periodic.query_model import PlannedOperator, ProfiledRun


def cost(*per_row_us: float, output_us: float = 0.0) -> OperatorCost:
    return OperatorCost.given([each * 1e-6 for each in per_row_us], output_us * 1e-6)


def test_a_join_charges_tuples_and_pairs_not_every_pair_that_could_be() -> None:
    join = PlanStep("join", ("s", "t"), cost(5.0, 5.0, output_us=0.2), 1e-4, pairs=True)
    assert PlanTime((join,)).seconds({"s": 4000, "t": 4000}) == pytest.approx(40.32e-3)
    assert pytest.approx(48.0) == 4000 * 4000 * 3e-6  # what T1 as printed charges


def test_eq_1_without_joins() -> None:
    plan = PlanTime((PlanStep("a", ("s",), cost(1.0), 0.5), PlanStep("b", ("a",), cost(4.0), 0.1)))
    assert plan.seconds({"s": 1000}) == pytest.approx(1e-3 + 0.5 * 4e-3)


def test_what_is_kept_shrinks_a_join_by_its_square() -> None:
    join = PlanStep("join", ("s", "t"), cost(5.0, 5.0, output_us=10.0), 1e-4, pairs=True)
    plan = PlanTime((join,), overhead=0.001)
    assert plan.seconds({"s": 4000, "t": 4000}, {"s": 0.5, "t": 0.5}) == pytest.approx(0.001 + 0.02 + 0.016 / 4)


def test_matches_per_tuple_of_a_table_join() -> None:
    plan = PlanTime((PlanStep("join", ("s",), cost(5.0, output_us=1.0), 3.0), PlanStep("sum", ("join",), cost(0.4))))
    assert plan.seconds({"s": 100}) == pytest.approx(100 * 5e-6 + 300 * 1e-6 + 300 * 0.4e-6)


def test_two_branches_and_a_join_behind_a_join() -> None:
    """The plan of RT Fig. 5, as corrected."""
    steps = (
        PlanStep("o11", ("s1",), cost(1.0), 0.5),
        PlanStep("o12", ("s2",), cost(1.0), 0.5),
        PlanStep("o13", ("o11", "o12"), cost(5.0, 5.0, output_us=0.2), 1e-3, pairs=True),
        PlanStep("o14", ("s3",), cost(1.0), 0.5),
        PlanStep("o15", ("o13", "o14"), cost(5.0, 5.0, output_us=0.2), 1e-3, pairs=True),
    )
    parts = PlanTime(steps).parts({"s1": 1000, "s2": 1000, "s3": 1000})
    assert parts["o13"] == pytest.approx(1000 * 5e-6 + 250 * 0.2e-6)
    assert parts["o15"] == pytest.approx(750 * 5e-6 + 250 * 500 * 1e-3 * 0.2e-6)


def test_smoothed_selectivities_serve_where_nothing_is_sampled() -> None:
    model = QueryModel([PlannedOperator("join", ("s", "t"), pairs=True)])
    model.observe([ProfiledRun("join", (1000, 2000), 200, 0.015)])
    assert model.selectivities()["join"] == pytest.approx(1e-4)
    # Two pairs of a sample are chance, thousands of them are not: what is known counts like 30.
    assert model.selectivities([ProfiledRun("join", (100, 100), 2)])["join"] == pytest.approx(32 / 310_000)
    assert model.selectivities([ProfiledRun("join", (10_000, 10_000), 20_000)])["join"] == pytest.approx(2e-4, rel=0.01)
    assert model.selectivities([ProfiledRun("join", (0, 100), 0)])["join"] == pytest.approx(1e-4)
