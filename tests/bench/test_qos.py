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
from freshet.bench.qos import POLICIES, STREAMS, gains, of_kind, qos
from freshet.bench.qos.load import LONG, LOOSE, TIGHT, Storm, asked, tight_ones
from freshet.bench.stage import Stage
from freshet.model import Curve
from freshet.policies import create
from freshet.quality.qos import Qos


def costs_of(questions: list[Question], overhead: float = 0.02, per_link: float = 1e-8) -> MeasuredCosts:
    return MeasuredCosts(
        overhead, {f"{each.name}.{suffix}": (per_link * each.links, 1.0) for each in questions for suffix in SUFFIXES}
    )


def test_tight_and_loose_queries_cost_the_same() -> None:
    questions = asked(10, STREAMS)
    costs: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
    for each, tight in zip(questions, tight_ones(questions), strict=True):
        costs[tight].append((each.links, each.selectivity))
    assert sorted(costs[True]) == sorted(costs[False])
    assert {each.stream for each in questions} == set(STREAMS)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), seconds=st.floats(20.0, 60.0), overhead=st.floats(0.005, 0.05))
def test_the_load_of_every_phase_is_what_is_wanted(seed: int, seconds: float, overhead: float) -> None:
    questions = asked(10, STREAMS)
    costs, load = costs_of(questions, overhead), Storm(seconds)
    events = load.events(costs, questions, seed)
    assert [event.time for event in events] == sorted(event.time for event in events)
    assert events[0].time == 0.0
    rows = events[0].rows
    assert rows * sum(costs.per_row(each.name) for each in questions) == pytest.approx(50 * overhead, rel=0.01)
    for begin, end, wanted in load.phases():
        steps = [each for event in events[1:] if begin <= event.time < end for each in questions
                 if each.stream == event.stream]  # fmt: skip
        work = sum(costs.per_row(each.name) * rows + costs.overhead / LONG for each in steps)
        # The smallest unit is one arrival.
        assert work / (end - begin) == pytest.approx(wanted, abs=1.2 * load.round(costs, questions) / (end - begin))


def test_curves_follow_the_round_and_the_storm() -> None:
    questions = asked(10, STREAMS)
    costs, load = costs_of(questions), Storm(30.0)
    promises = [curve.promise for curve in load.curves(costs, questions).values()]
    expected = {True: TIGHT * load.round(costs, questions), False: LOOSE * 12.0}
    assert promises == pytest.approx([expected[tight] for tight in tight_ones(questions)])


def test_a_prediction_is_what_one_can_work_out_by_hand() -> None:
    (question,) = asked(1, ("s1",))
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
    questions = asked(2, ("s1",))
    assert [of_kind(one(0.9), questions, tight) for tight in (True, False)] == [0.9, 0.0]


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_qos_gives_its_figures(spark: object, tmp_path: Path) -> None:
    result = qos(Stage(tmp_path), seconds=4.0, repetitions=2, queries=4, trains=0.1, warm_up=1)
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
