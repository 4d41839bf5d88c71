"""Quality of answers, bounds of estimates, refinement, feedback (RT §4.4, §5.2)."""

from __future__ import annotations

import numpy as np
import pytest

from freshet.model import InstanceInput
from freshet.model.errors import UserError
from freshet.model.promises.quality_table import QualityTable
from freshet.quality.periodic import (
    FeedbackController,
    FeedbackLevels,
    Gains,
    InstanceFigures,
    InstanceMeter,
    OperatorCost,
    PlanStep,
    PlanTime,
    ReadyInstance,
    answer_quality,
    avg_estimate,
    count_estimate,
    kept_along,
    kept_at,
    largest_ratio,
    sum_estimate,
)


def test_shares_along_a_path_multiply_and_the_worst_branch_counts() -> None:
    assert kept_along([0.8, 0.5]) == pytest.approx(0.4)
    table = QualityTable.parse({"s": "linear", "t": "tolerant"})
    assert answer_quality(table, {"s": 0.5, "t": 0.25}) == pytest.approx(0.5)
    assert answer_quality(table, {"s": 0.9, "t": 0.25}) == pytest.approx(0.7, abs=1e-3)
    assert answer_quality(table, {"s": 1.0, "t": 1.0}, in_time=False) == 0.0


def test_fig_6_as_drop_ratios() -> None:
    for name, kept in (("convex", 0.25), ("linear", 0.7), ("concave", 0.97)):
        assert kept_at(QualityTable.parse(name), 0.7, ["s"])["s"] == pytest.approx(kept, abs=1e-3)


def test_panes_that_were_thinned_at_different_times() -> None:
    assert InstanceInput("q.e", "s", 0, 0, 300, 100, 1.0).window_kept(0.5) == pytest.approx(0.625)
    assert InstanceInput("q.e", "s", 0, 0, 0).window_kept(0.5) == 0.5


@pytest.mark.parametrize("wrong", [{"s": {"t": "strict"}}, {}, [[0.5, 0.9], [0.7, 0.8], [1, 1]], [[0.5, 0.5]], "steep"])
def test_wrong_tables_are_refused(wrong: object) -> None:
    with pytest.raises(UserError, match="quality"):
        QualityTable.parse(wrong)


@pytest.mark.parametrize("name", ["tolerant", "proportional", "strict"])
def test_kept_is_the_inverse_of_worth(name: str) -> None:
    table = QualityTable.parse(name)
    for level in np.linspace(0.01, 1.0, 30):
        assert table.worth(table.kept(float(level))) == pytest.approx(level)


def test_a_flat_piece_keeps_the_least_that_is_worth_it() -> None:
    table = QualityTable.parse([[0.5, 1.0], [1, 1]])
    assert table.kept(1.0) == 0.5
    assert table.kept(0.5) == 0.25


def test_refinement_knows_overhead_and_joins() -> None:
    assert largest_ratio(lambda ratio: 20 + 80 * ratio, 50) == pytest.approx(0.375, abs=1e-5)
    assert 20 + 80 * 0.5 == 60  # epsilon = D / T would take 60
    assert largest_ratio(lambda ratio: 40 * ratio + 16 * ratio**2, 28) == pytest.approx(0.570, abs=1e-3)
    join = PlanStep("join", ("s", "t"), OperatorCost.given([5e-3, 5e-3], 10e-3), 1e-4, pairs=True)
    plan = PlanTime((join,))
    assert plan.seconds({"s": 4000, "t": 4000}) == pytest.approx(56.0)
    found = largest_ratio(lambda ratio: plan.seconds({"s": 4000, "t": 4000}, {"s": ratio, "t": ratio}), 28.0)
    assert found == pytest.approx(0.570, abs=1e-3)


def test_bounds_hold_as_often_as_they_say() -> None:
    random = np.random.default_rng(1)
    values = random.gamma(2.0, 3.0, 2000)
    held = np.zeros(3)
    for _ in range(1000):
        kept = values[random.random(len(values)) < 0.3]
        count, total, squares = len(kept), float(kept.sum()), float((kept**2).sum())
        estimates = (
            (count_estimate(count, 0.3), len(values)),
            (sum_estimate(total, squares, 0.3), values.sum()),
            (avg_estimate(count, total, squares, 0.3), values.mean()),
        )
        held += [abs(found.value - true) <= found.bound for found, true in estimates]
    assert all(share == pytest.approx(0.95, abs=0.025) for share in held / 1000)


def test_what_everything_was_kept_of_has_no_bound() -> None:
    assert count_estimate(10, 1.0).bound == sum_estimate(5.0, 9.0, 1.0).bound == 0.0
    assert avg_estimate(10, 5.0, 9.0, 1.0).bound == 0.0


def test_feedback_drops_after_misses_and_recovers() -> None:
    feedback = FeedbackLevels(FeedbackController(Gains(0.4, 0.0)), every=1.0)
    instance = ReadyInstance("q", 2.0, {"s": 100}, PlanTime(()))
    for _ in range(4):
        feedback.finished(InstanceFigures("q", 0.0, 1.0, 1.2, 0.0))
    first = feedback.assign(1.0, [instance])["q"]
    assert first.kept["s"] == pytest.approx(1.0 - 0.4 * 0.98)
    for second in range(2, 60):
        feedback.finished(InstanceFigures("q", 0.0, 1.0, 0.5, 1.0))
        last = feedback.assign(float(second), [instance])["q"]
    assert first.kept["s"] < last.kept.get("s", 1.0)


def test_the_meter_of_instances() -> None:
    meter = InstanceMeter()
    meter.add(InstanceFigures("q", 0.0, 1.0, 0.5, 0.8, level=0.8, predicted=0.11, took=0.1, sampling=0.01))
    meter.add(InstanceFigures("q", 1.0, 2.0, 2.5, 0.0, took=0.1))
    meter.add(InstanceFigures("q", 2.0, 3.0, None, 0.0))
    meter.add(InstanceFigures("q", 3.0, 4.0, 4.5, 0.0, took=0.0, ended_early=True))
    found = meter.snapshot(skipped=2)
    assert (found["instances"], found["missed"], found["skipped"], found["abandoned"]) == (4, 3, 2, 1)
    assert found["ended_early"] == 1
    assert (found["quality"], found["lateness_s"]) == pytest.approx((0.2, 0.5))
    assert found["time_error_p50"] == pytest.approx(0.1, rel=0.02)
    assert found["sampling_share"] == pytest.approx(0.01 / 0.21)
    assert found["deviation"] == pytest.approx(np.std([0.8, 0, 0, 0]))
