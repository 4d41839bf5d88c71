import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import Chain, ChainResult
from freshet.quality import Meters, Waiting
from freshet.quality.query_meter import QueryMeter
from freshet.quality.recent import HALF, RecentResponse
from freshet.quality.response import ResponseMeter

TINY = 1e-6
"""Times add up with an error."""


@given(
    st.lists(st.tuples(st.floats(0, 4), st.integers(1, 40), st.floats(0, 60)), max_size=60),
    st.floats(0, 12),
)
def test_is_what_departed_between_half_and_all_of_the_time_ago(steps, silence):
    meter = ResponseMeter()
    recent = RecentResponse(meter.seen, start=0.0)
    now, seen = 0.0, []
    for pause, rows, age in steps:
        now += pause
        recent.turn(now)
        meter.add_train(rows, now, [now - age, now - age / 2])
        seen.append((now, rows))
        found = recent.seen(now)
        assert found.count >= sum(rows for at, rows in seen if at > now - HALF + TINY)
        assert found.count <= sum(rows for at, rows in seen if at > now - 2 * HALF - TINY)
    now += silence
    found = recent.seen(now)
    assert found.count <= sum(rows for at, rows in seen if at > now - 2 * HALF - TINY)
    assert (found.mean is None) == (found.count == 0)


def test_mean_and_quantile_are_those_of_the_recent_ones_alone():
    meter = ResponseMeter()
    recent = RecentResponse(meter.seen, start=0.0)
    ages = np.random.default_rng(1).exponential(0.2, 1000)
    meter.add_many(np.full(5000, 30.0))
    recent.turn(100.0)
    meter.add_many(ages)
    found = recent.seen(101.0)
    assert found.count == 1000
    assert found.sum / found.count == pytest.approx(ages.mean())
    assert found.p95 == pytest.approx(np.quantile(ages, 0.95), rel=0.03)
    assert meter.times().mean == pytest.approx((5000 * 30.0 + ages.sum()) / 6000)


def test_a_flood_that_is_over_is_not_in_the_age_of_answers():
    meters = Meters(start=0.0)
    for name in ("calm", "flooded"):
        meters.add_query(name, 0.0)
    old = ChainResult(Chain((0,), ()), 2, (), (1.0, 2.0))
    meters.record("flooded", old, 40.0)
    meters.record("calm", ChainResult(Chain((0,), ()), 1, (), (99.0,)), 99.5)
    meters.wait("calm", Waiting(rows=1, bytes=1, since=98.0))
    report = meters.snapshot(100.0)
    assert report["queries"]["flooded"]["response"]["mean_s"] == 38.5
    assert report["queries"]["flooded"]["response"]["recent_mean_s"] is None
    assert report["total"]["response"]["recent_mean_s"] == 0.5
    assert report["total"]["response"]["recent_p95_s"] == pytest.approx(0.5, rel=0.02)
    assert report["total"]["oldest_waiting_s"] == 2.0


def test_a_query_that_has_just_begun_has_no_age():
    response = QueryMeter(start=5.0).snapshot(5.0)["response"]
    assert (response["recent_mean_s"], response["recent_p95_s"]) == (None, None)
    assert Meters(start=0.0).snapshot(1.0)["total"]["oldest_waiting_s"] is None
