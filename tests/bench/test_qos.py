"""The study of QoS on Spark: its load, its curves, its model, and a run that is far too short to mean much."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.bench.freshness.fit import SUFFIXES
from freshet.bench.freshness.load import LoadBatch, MeasuredCosts
from freshet.bench.freshness.model import predict_qos
from freshet.bench.freshness.queries import Question
from freshet.bench.qos import POLICIES, by_deadline, gains, qos
from freshet.bench.qos.load import Storm, asked
from freshet.bench.stage import Stage
from freshet.model import Curve
from freshet.policies import create
from freshet.quality.qos import Qos


def costs_of(questions: list[Question], overhead: float = 0.02, per_link: float = 1e-8) -> MeasuredCosts:
    return MeasuredCosts(
        overhead, {f"{each.name}.{suffix}": (per_link * each.links, 1.0) for each in questions for suffix in SUFFIXES}
    )


@settings(max_examples=30, deadline=None)
@given(overhead=st.floats(0.005, 0.05), count=st.integers(4, 12))
def test_the_load_of_every_phase_is_what_is_wanted(overhead: float, count: int) -> None:
    questions = asked(count)
    costs, load = costs_of(questions, overhead), Storm()
    events, phases = load.events(costs, questions, seed=1), list(load.phases(costs, questions))
    assert [event.time for event in events] == sorted(event.time for event in events)
    assert events[0].time == 0.0
    work = events[0].rows * sum(costs.per_row(each.name) for each in questions)
    assert work == pytest.approx(5 * count * overhead, rel=0.01)
    assert [phase.load for phase in phases] == [0.6, 1.3, 0.6]
    for phase in phases:
        came = [event for event in events if phase.begin <= event.time < phase.end]
        assert len(came) * work / (phase.end - phase.begin) == pytest.approx(phase.load, rel=0.06)
    assert load.seconds(costs, questions) == phases[-1].end


def test_deadlines_are_those_of_table_4_4_in_rounds() -> None:
    questions = asked(8)
    costs, load = costs_of(questions), Storm()
    rounds = [curve.promise / load.round(costs, questions) for curve in load.curves(costs, questions).values()]
    assert rounds == pytest.approx([0.075 / 0.286, 0.15 / 0.286, 0.225 / 0.286, 0.3 / 0.286] * 2)


def test_a_prediction_is_what_one_can_work_out_by_hand() -> None:
    (question,) = asked(1)
    costs = MeasuredCosts(0.5, {"q0.filter_1": (1e-3, 1.0), "q0.filter_2": (0.0, 1.0), "q0.project": (0.0, 1.0)})
    events = [LoadBatch(0.0, "s1", 1000, 0), LoadBatch(5.0, "s1", 2000, 0)]
    # Latencies 1.75 and 2.75 s, of which the second has fallen to a quarter.
    curves = {"q0": Curve([(0, 1), (2, 1), (3, 0)])}
    found = predict_qos(create("slope-slack-push(1)"), events, [0.25, 0.25], [question], costs, curves)
    assert found.average == pytest.approx((1000 + 2000 * 0.25) / 3000)


def test_differences_are_paired() -> None:
    def one(average: float) -> Qos:
        return Qos(average, average, {"q0": average, "q1": 0.0}, 0, 1)

    found = {"slope_slack": [one(0.9), one(0.5)], "rr": [one(0.7), one(0.6)]}
    assert gains(found, "rr") == pytest.approx([0.2, -0.1])
    assert by_deadline([one(0.9)], asked(2)) == [0.9, 0.0, 1.0, 1.0]


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_qos_gives_its_figures(spark: object, tmp_path: Path) -> None:
    result = qos(Stage(tmp_path), repetitions=2, queries=4, trains=0.05, warm_up=1)
    for name in POLICIES:
        assert 0.0 <= result.figures[f"qos_{name}"] <= 1.0
        low, high = result.spread[f"qos_{name}"]
        assert low <= result.figures[f"qos_{name}"] <= high
        assert 0.0 <= result.figures[f"predicted_qos_{name}"] <= 1.0
    for other in ("fixed", "rr"):
        expected = result.figures["qos_slope_slack"] - result.figures[f"qos_{other}"]
        assert result.figures[f"qos_slope_slack_minus_{other}"] == pytest.approx(expected, abs=1e-5)
        assert len(result.conditions["paired_differences"][f"slope_slack_minus_{other}"]) == 2
    assert result.figures["steps"] > 0
    assert result.figures["rows_per_train"] >= 1
    assert 0.0 <= result.figures["order_as_predicted"] <= 1.0
    best_first = [result.figures[f"qos_{name}"] for name in result.conditions["order"]["measured"]]
    assert best_first == sorted(best_first, reverse=True)
