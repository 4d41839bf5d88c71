"""Latency curves: the three questions, and what is refused."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import Curve, UserError


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    count = draw(st.integers(1, 8))
    latencies = sorted(draw(st.lists(st.integers(1, 40), min_size=count, max_size=count)))
    latencies[0] *= draw(st.integers(0, 1))
    utilities = sorted(draw(st.lists(st.integers(0, 10), min_size=count, max_size=count)), reverse=True)
    return Curve([(latency / 4, utility / 10) for latency, utility in zip(latencies, utilities, strict=True)])


def plain_utility(curve: Curve, latency: float) -> float:
    """By walking over the points; a point belongs to what is before it."""
    points = curve.points
    if latency <= points[0][0]:
        return points[0][1]
    for (begin, high), (end, low) in pairwise(points):
        if begin < latency <= end:
            return high + (low - high) * (latency - begin) / (end - begin)
    return points[-1][1]


@given(curves(), st.floats(0, 12))
def test_utility_is_the_interpolation(curve: Curve, latency: float) -> None:
    assert curve.utility(latency) == pytest.approx(plain_utility(curve, latency), abs=1e-12)
    assert curve.utilities([latency])[0] == pytest.approx(curve.utility(latency), abs=1e-12)


@given(curves(), st.floats(0, 12))
def test_slope_holds_until_the_slack_is_used_up(curve: Curve, latency: float) -> None:
    slack, slope = curve.slack(latency), curve.slope(latency)
    assert slack >= 0.0
    until = latency + slack if math.isfinite(slack) else latency + 5.0
    lost = curve.utility(latency) - curve.utility(until)
    if curve.critical and latency <= curve.critical[0] and latency in [point[0] for point in curve.points]:
        return  # A sudden drop may lie right here.
    assert lost == pytest.approx(slope * (until - latency), abs=1e-9)


@given(curves())
def test_nothing_is_lost_before_the_promise_and_something_right_after(curve: Curve) -> None:
    promise = curve.promise
    best = curve.points[0][1]
    if math.isinf(promise):
        assert curve.utility(100.0) == best
    else:
        assert curve.utility(promise) == pytest.approx(best, abs=1e-12)
        assert curve.utility(promise + 1e-3) < best


@given(curves(), st.lists(st.floats(0, 12)))
def test_arrays_agree_with_single_latencies(curve: Curve, latencies: list[float]) -> None:
    assert curve.utilities(latencies).tolist() == [curve.utility(latency) for latency in latencies]


def test_a_last_level_piece_is_no_promise() -> None:
    curve = Curve([(0, 1), (1, 1), (2, 0), (9, 0)])
    assert curve.critical == (1.0, 2.0)
    assert curve.slack(3.0) == math.inf
    assert curve.slope(3.0) == 0.0


def test_points_on_a_line_are_not_critical() -> None:
    assert Curve([(0, 1), (1, 0.75), (2, 0.5), (4, 0)]).critical == (4.0,)


def test_a_sudden_drop_is_reached_at_its_latency() -> None:
    curve = Curve.deadline(6)
    assert (curve.utility(6.0), curve.slack(6.0), curve.slope(6.0)) == (1.0, 0.0, 0.0)
    assert (curve.utility(6.5), curve.slack(6.5)) == (0.0, math.inf)
    assert np.array_equal(curve.utilities([6.0, 6.5]), [1.0, 0.0])


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ([], "at least one point"),
        ([(1, 1), (0, 0)], "order of latency"),
        ([(0, 0.5), (1, 0.6)], "never rises"),
        ([(-1, 1)], "latency 0 or later"),
        ([(0, 1), (0, 0)], "cannot drop at latency 0"),
        ([(0, math.nan)], "outside"),
        ([(0, 1), (math.inf, 0)], "finite"),
        ([(0, 2), (1, 0)], r"query q: utility 2 at latency 0 s is outside \[0, 1\]"),
        ([(0, 1, 2)], "query q: a point of a latency curve is"),
        ([("soon", 1)], "query q: 'soon' is not a duration"),
        ([(None, 1)], "query q: a latency is a duration such as '500 ms' or a number of seconds, not None"),
        ([(0, "all")], "query q: a utility is a number from 0 to 1, not 'all'"),
    ],
)
def test_what_users_are_told(points: list[tuple[float, float]], text: str) -> None:
    with pytest.raises(UserError, match=text):
        Curve.for_query("q", points)
