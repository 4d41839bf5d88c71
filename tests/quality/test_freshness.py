import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.quality import FreshnessMeter, mean_freshness, staleness_probability

quarters = st.integers(0, 400).map(lambda number: number / 4)


def brute_force(pairs, start, now):
    """Eq. 2 at a resolution of a quarter of a second: the share of moments at which no tuple waits."""
    moments = [tick / 4 + 0.125 for tick in range(int(start * 4), int(now * 4))]
    fresh = [not any(came < moment < went for came, went in pairs) for moment in moments]
    return sum(fresh) / len(fresh)


@st.composite
def trains(draw):
    """Trains of tuples, departures nondecreasing, arrivals in any order (several paths)."""
    result, departure = [], 0.0
    for _ in range(draw(st.integers(0, 12))):
        departure += draw(quarters) / 8
        departure = np.floor(departure * 4) / 4
        arrivals = draw(st.lists(quarters, min_size=1, max_size=6))
        result.append((float(departure), [min(came, float(departure)) for came in arrivals]))
    return result


@given(trains(), quarters)
def test_trains_equal_the_definition(given_trains, start):
    now = start + 25.0
    meter = FreshnessMeter(start)
    for departure, arrivals in given_trains:
        meter.stale(min(arrivals), departure)
    pairs = [(came, departure) for departure, arrivals in given_trains for came in arrivals]
    assert meter.freshness(now) == pytest.approx(brute_force(pairs, start, now), abs=1e-12)


@given(st.lists(st.tuples(quarters, quarters), max_size=60), quarters)
def test_tuples_with_their_own_departures_equal_the_definition(pairs, start):
    pairs = [(min(pair), max(pair)) for pair in pairs]
    meter = FreshnessMeter(start)
    meter.stale_many([came for came, _ in pairs], [went for _, went in pairs])
    assert meter.freshness(start + 25.0) == pytest.approx(brute_force(pairs, start, start + 25.0), abs=1e-12)


@given(trains(), quarters, quarters, st.floats(0, 1))
def test_waiting_counts_by_its_probability(given_trains, since, now, probability):
    meter = FreshnessMeter(0.0)
    for departure, arrivals in given_trains:
        meter.stale(min(arrivals), departure)
    certain = FreshnessMeter(0.0)
    for departure, arrivals in given_trains:
        certain.stale(min(arrivals), departure)
    certain.stale(since, now)
    known, full = meter.stale_seconds(now), certain.stale_seconds(now)
    got = meter.stale_seconds(now, since, probability)
    assert got == pytest.approx(known + probability * (full - known), abs=1e-9)


def test_figure_2_of_the_paper():
    # FAS Fig. 2: three updates, each stale until it is propagated.
    meter = FreshnessMeter(start=0.0)
    meter.stale(1.0, 2.0)
    meter.stale(4.0, 4.5)
    meter.stale(7.0, 9.0)
    assert meter.freshness(now=10.0) == pytest.approx((10 - 3.5) / 10)


def test_staleness_of_a_stuck_query_keeps_growing():
    meter = FreshnessMeter(start=100.0)
    meter.stale(101.0, 102.0)
    values = [meter.freshness(now, waiting_since=103.0) for now in (104.0, 110.0, 200.0, 1000.0)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.01


def test_what_a_stuck_path_missed_is_still_counted_after_many_short_intervals_of_another():
    meter = FreshnessMeter(start=0.0)
    for second in range(1, 20_000):
        meter.stale(second, second + 0.01)
    # The stuck path's tuple came at 10: from then on the output was stale all the time.
    assert meter.freshness(now=20_000.0, waiting_since=10.0) == pytest.approx(0.0005, abs=1e-4)
    meter.stale(10.0, 20_000.0)
    assert meter.freshness(now=20_000.0) == pytest.approx(0.0005, abs=1e-4)
    assert not meter.exact


def test_staleness_before_the_start_does_not_count():
    meter = FreshnessMeter(start=10.0)
    meter.stale(0.0, 12.0)
    assert meter.freshness(now=20.0) == 0.8
    assert meter.freshness(now=20.0, waiting_since=-5.0) == 0.0


def test_nothing_observed_is_fresh():
    assert FreshnessMeter(start=3.0).freshness(now=3.0) == 1.0
    assert FreshnessMeter(start=3.0).freshness(now=5.0) == 1.0


@given(st.floats(0, 1), st.integers(0, 50))
def test_staleness_probability_is_that_of_the_paper(selectivity, waiting):
    expected = 1 - (1 - selectivity) ** waiting
    assert staleness_probability(selectivity, waiting) == pytest.approx(expected, abs=1e-12)


def test_weighted_mean():
    assert mean_freshness([1.0, 0.0], [0.9, 0.1]) == pytest.approx(0.9)
    assert mean_freshness([], []) is None
