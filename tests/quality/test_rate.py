import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.quality import RecentRate


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 1000)), max_size=30), st.floats(100, 150))
def test_is_the_decayed_sum_in_any_order(events, now):
    rate = RecentRate(start=0.0, span=10.0)
    for at, amount in events:
        rate.add(amount, at)
    decayed = sum(amount * math.exp(-(now - at) / 10.0) for at, amount in events)
    assert rate.rate(now) == pytest.approx(decayed / (10.0 * (1 - math.exp(-now / 10.0))))


def test_a_young_rate_is_not_too_low():
    rate = RecentRate(start=0.0)
    for tenth in range(1, 11):
        rate.add(10, tenth / 10)
    assert rate.rate(1.0) == pytest.approx(100, rel=0.1)


def test_silence_lets_it_fade():
    rate = RecentRate(start=0.0)
    rate.add(1000, 1.0)
    assert rate.rate(200.0) < 1e-3
    assert rate.rate(1.0) > 0


def test_no_time_no_rate():
    rate = RecentRate(start=5.0)
    rate.add(10, 5.0)
    assert rate.rate(5.0) == 0.0
