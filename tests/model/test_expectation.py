"""Expectations over a query's life, priority classes, and what is refused."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import MEASURES, Curve, Expectation, Expectations, Promises, UserError, priority_classes
from freshet.model.promises.promise import shared

# The example of MAV §4.2 in numbers: what is expected within, between and outside intervals.
TWO = {"intervals": [[(0, 2), (10, 1)], [(20, 0.5), (30, 0.5)]]}


@pytest.mark.parametrize(("age", "expected"), [(0, 2), (5, 1.5), (10, 1), (15, 0.75), (20, 0.5), (25, 0.5), (40, 0.5)])
def test_an_expectation_is_linear_inside_and_between_intervals_and_constant_outside(
    age: float, expected: float
) -> None:
    assert Expectation.parse("latency", TWO).at(age) == expected


def test_before_its_first_point_an_expectation_is_constant() -> None:
    late = Expectation.parse("latency", {"points": [["10 s", "2 s"], ["20 s", "1 s"]]})
    assert late.at(0.0) == late.at(10.0) == 2.0


def test_at_a_common_time_the_later_interval_holds() -> None:
    step = {"intervals": [[[0, "10 MB"], ["500 s", "10 MB"]], [["500 s", "1 MB"], ["600 s", "1 MB"]]]}
    memory = Expectation.parse("memory", step)
    assert [memory.at(age) for age in (499.999, 500.0, 7000.0)] == [1e7, 1e6, 1e6]


@st.composite
def expectations(draw: st.DrawFn) -> Expectation:
    ages = sorted(draw(st.lists(st.integers(0, 50), min_size=1, max_size=8)))
    points = [(age, draw(st.integers(1, 100))) for age in ages]
    cuts = sorted(draw(st.sets(st.integers(1, len(points)), max_size=3)) | {0, len(points)})
    return Expectation.parse("latency", {"intervals": [points[low:high] for low, high in pairwise(cuts)]})


@given(expectations(), st.floats(0, 60))
def test_an_expected_figure_lies_between_the_points_around_it(wish: Expectation, age: float) -> None:
    before = [figure for at, figure in wish.points if at <= age][-1:] or [wish.points[0][1]]
    behind = [figure for at, figure in wish.points if at > age][:1] or [wish.points[-1][1]]
    low, high = sorted([*before, *behind])
    assert low - 1e-9 <= wish.at(age) <= high + 1e-9


REFUSED: list[tuple[str, Any, str]] = [
    ("latency", {"intervals": [[(0, 2), (10, 1)], [(5, 1), (20, 1)]]},
     "intervals[1] begins at 5 s, before intervals[0] ends at 10 s: let them follow one another"),
    ("latency", {"points": [("10 s", 1), (5, 2)]}, "points[1] goes back from 10 s to 5 s"),
    ("latency", {"intervals": [[(0, 1)], [(9, 1), (8, 1)]]}, "intervals[1][1] goes back from 9 s to 8 s"),
    ("latency", "0 s", "a latency of 0 s cannot be expected: use a value above 0, such as '2 s'"),
    ("memory", {"points": [(0, 0)]},
     "points[0]: a memory of 0 cannot be expected: use a value above 0, such as '10 MB'"),
    ("throughput", -1, "a throughput of -1 cannot be expected: use a value above 0, such as '200 rows/s'"),
    ("throughput", "2 s", "'2 s' is not a throughput: use for example '200 rows/s'"),
    ("latency", float("inf"), "inf is too long for a duration: at most 36500 days are allowed"),
    ("memory", float("nan"), "nan is not a memory: use for example '10 MB'"),
    ("latency", True, "a latency is a value such as '2 s', not True"),
    ("latency", [], "points has no points: use at least one, such as [[0, '2 s']]"),
    ("latency", {"class": "must"}, "needs either points, such as [[0, VALUE]], or intervals, a list of such lists"),
    ("latency", {"points": 1, "klass": "must"},
     "'klass' is not a key of an expectation: it has class, and points or intervals"),
    ("latency", {"points": [[1]]}, "points[0] must be [time, value], such as ['10 s', '2 s'], not [1]"),
    ("latency", {"points": [["soon", 1]]},
     "points[0]: 'soon' is not a duration: use for example '250 ms', '10 s', '1 minute'"),
    ("latency", {"intervals": 3},
     "intervals is a list of lists of points, such as [[[0, VALUE], [10, VALUE]], [[20, VALUE]]]"),
    ("latency", {"intervals": [[[0, 1]], 2]},
     "intervals[1] must be a list of points, such as [[0, '2 s']], not 2"),
    ("latency", {"class": "msut", "points": 1},
     "there is no class 'msut' (there are: must, best-effort, dont-care); "
     "define it with its weight: class = {msut = 0.8}"),
    ("latency", {"class": {"gold": -1}, "points": 1}, "class gold: its weight must be a number above 0, not -1"),
    ("latency", {"class": 1, "points": 1},
     "a class is a name such as \"must\", or a name with its weight, {gold = 0.8}, not 1"),
    ("latncy", 1, "there is no such measure (there are: latency, memory, throughput)"),
]  # fmt: skip


@pytest.mark.parametrize(("measure", "value", "line"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_expectation_is_refused_in_one_line(measure: str, value: Any, line: str) -> None:
    with pytest.raises(UserError) as refused:
        Expectation.parse(measure, value)
    assert str(refused.value) == line


def test_classes_count_as_they_are_given_and_there_may_be_any_number() -> None:
    classes = priority_classes({"gold": 3, "silver": 0.75, "best-effort": 0.25})
    wishes = Expectations.parse(
        {
            "latency": {"class": "gold", "points": 1},
            "memory": {"class": "silver", "points": 1},
            "throughput": {"class": {"bronze": 0.6}, "points": 1},
        },
        classes,
    )
    assert [wish.priority.weight for wish in wishes] == [3.0, 0.75, 0.6]
    # Down from each class to the next one that there is, also to one that only this query defines.
    assert [wishes.floor(weight) for weight in (3.0, 1.0, 0.75, 0.6, 0.25, 0.01)] == [1.0, 0.75, 0.6, 0.25, 0.01, 0.0]


def test_the_short_form_is_of_best_effort_for_ever() -> None:
    [wish] = Expectations.parse({"throughput": "200 rows/s"})
    assert (wish.priority.weight, wish.at(0.0), wish.at(1e9)) == (0.5, 200.0, 200.0)


def test_expectations_change_one_measure_at_a_time() -> None:
    wishes = Expectations.parse({"memory": "1 MB", "every": "500 ms"})
    both = wishes.changed("latency", Expectation.parse("latency", "1 s"))
    assert [wish.measure for wish in both] == ["latency", "memory"]
    assert both.changed("memory", None).get("memory") is None
    assert (both.every, both.get("memory")) == (0.5, wishes.get("memory"))


def test_the_promise_of_a_curve_is_expected_beside_other_expectations() -> None:
    wishes = Expectations.parse({"memory": "1 MB"})
    expected = Promises(curve=Curve.deadline(2.0), expect=wishes).expected
    assert expected.get("latency") == Expectation.parse("latency", "2 s")
    own = Expectations.parse({"latency": "1 s"})
    assert Promises(curve=Curve.deadline(2.0), expect=own).expected == own
    never_falls = Promises(curve=Curve([(0, 1.0)]), expect=wishes).expected
    assert never_falls == wishes
    assert not Promises(curve=Curve.deadline(2.0)).expected


def test_shared_work_is_expected_what_its_most_critical_query_is() -> None:
    must = Expectations.parse({"memory": {"class": "must", "points": "1 MB"}})
    soft = Expectations.parse({"latency": "1 s"})
    both = shared([(Promises(expect=soft), 0.0), (Promises(0.1, expect=must), 0.0), (Promises(), 0.0)])
    assert both.expect == must


@given(st.sampled_from(sorted(MEASURES)), st.floats(0, 1e9), st.floats(1e-3, 1e9))
def test_reductions_are_shares_and_only_of_what_is_met(measure: str, observed: float, expected: float) -> None:
    known = MEASURES[measure]
    assert 0.0 <= known.reduction(observed, expected) <= 1.0
    if not known.meets(observed, expected):
        assert known.reduction(observed, expected) == 0.0
        assert known.excess(observed, expected) >= 1.0
