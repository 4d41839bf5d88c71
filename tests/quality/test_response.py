import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.quality import ResponseMeter, ResponseTimes

RANKS = 17
arrivals = st.lists(st.floats(0, 90), min_size=1, max_size=80)


def at_ranks(sorted_arrivals):
    """What an executor tells of a train: arrivals at evenly spaced ranks."""
    count = min(RANKS, len(sorted_arrivals))
    places = np.linspace(0, len(sorted_arrivals) - 1, count).round().astype(int)
    return tuple(sorted_arrivals[place] for place in places)


@given(st.lists(st.tuples(st.lists(st.floats(0, 90), min_size=1, max_size=RANKS), st.floats(91, 100)), max_size=50))
def test_small_trains_are_exact(trains):
    meter = ResponseMeter()
    times = []
    for came, departure in trains:
        meter.add_train(len(came), departure, sorted(came))
        times += [departure - arrival for arrival in came]
    got = meter.times()
    assert got.count == len(times)
    if times:
        assert got.mean == pytest.approx(np.mean(times))
        assert got.max == max(times)
        for share, value in ((0.5, got.p50), (0.95, got.p95), (0.99, got.p99)):
            wanted = sorted(times)[int(np.ceil(share * len(times) - 1e-9)) - 1]
            assert value == pytest.approx(wanted, rel=0.0101)


@given(arrivals)
def test_every_train_keeps_count_and_bounds(came):
    meter = ResponseMeter()
    ordered = sorted(came)
    meter.add_train(len(ordered), 100.0, at_ranks(ordered))
    got = meter.times()
    assert got.mean is not None
    assert got.p50 is not None
    assert got.max is not None
    assert got.count == len(came)
    assert got.max == 100.0 - min(came)
    assert 100.0 - max(came) - 1e-9 <= got.mean <= got.max + 1e-9
    # A quantile from ranks lies between the exact ones half a spacing of ranks (and its rounding) away.
    times = np.sort(100.0 - np.array(came))
    slack = len(times) / (2 * (RANKS - 1)) + 1
    low = times[max(0, int(np.floor(0.5 * len(times) - slack)) - 1)]
    high = times[min(len(times) - 1, int(np.ceil(0.5 * len(times) + slack)))]
    assert low * 0.989 <= got.p50 <= high * 1.011


@given(st.integers(1, 5000), st.floats(0.0, 50.0), st.floats(0.0, 0.01))
def test_the_mean_of_evenly_spread_arrivals_is_exact(rows, first, gap):
    last = first + gap * (rows - 1)
    ranks = tuple(np.linspace(first, last, min(rows, RANKS)))
    meter = ResponseMeter()
    meter.add_train(rows, 200.0, ranks)
    assert meter.times().mean == pytest.approx(200.0 - (first + last) / 2)


def test_poisson_arrivals_in_long_trains_come_close():
    random = np.random.default_rng(3)
    meter, times = ResponseMeter(), []
    for _ in range(50):
        came = np.cumsum(random.exponential(0.001, 10_000))
        departure = float(came[-1]) + 1.0
        meter.add_train(len(came), departure, at_ranks(came))
        times.append(departure - came)
    every = np.concatenate(times)
    got = meter.times()
    assert got.mean == pytest.approx(every.mean(), rel=0.005)
    assert got.p50 == pytest.approx(np.quantile(every, 0.5), rel=0.07)
    assert got.p99 == pytest.approx(np.quantile(every, 0.99), rel=0.07)


@given(st.lists(st.lists(st.floats(0, 1000), max_size=30), max_size=20))
def test_single_response_times_are_exact(groups):
    meter = ResponseMeter()
    for group in groups:
        meter.add_many(group)
    every = [time for group in groups for time in group]
    got = meter.times()
    assert got.count == len(every)
    if every:
        assert got.mean == pytest.approx(np.mean(every))
        assert got.max == max(every)


@given(arrivals, arrivals)
def test_merging_equals_seeing_both(left, right):
    both, first, second = ResponseMeter(), ResponseMeter(), ResponseMeter()
    for came, meter in ((left, first), (right, second)):
        for target in (meter, both):
            target.add_train(len(came), 100.0, at_ranks(sorted(came)))
            target.add_many(came)
    first.merge(second)
    got, wanted = first.times(), both.times()
    assert got.count == wanted.count
    assert got.mean == pytest.approx(wanted.mean)
    assert (got.p50, got.p95, got.p99) == pytest.approx((wanted.p50, wanted.p95, wanted.p99))
    assert got.max == wanted.max
    assert second.times().count == 2 * len(right)


def test_reading_in_between_changes_nothing():
    often, once = ResponseMeter(), ResponseMeter()
    for index in range(100):
        for meter in (often, once):
            meter.add_train(2, index + 1.0, (index * 1.0, index + 0.5))
        often.times()
    assert often.times().p50 == once.times().p50
    assert often.times().mean == pytest.approx(once.times().mean)


def test_empty():
    meter = ResponseMeter()
    meter.add_train(0, 1.0, ())
    meter.merge(ResponseMeter())
    assert meter.times() == ResponseTimes(0)


def test_the_caller_keeps_its_array():
    meter, mine = ResponseMeter(), np.array([-1.0, 2.0])
    meter.add_many(mine)
    mine[:] = 50.0
    assert meter.times().max == 2.0
    assert mine.tolist() == [50.0, 50.0]


def test_a_clock_that_is_ahead_gives_no_negative_times():
    meter = ResponseMeter()
    meter.add_train(1, 5.0, (6.0,))
    assert meter.times().mean == 0.0


def test_output_without_arrivals_is_refused():
    with pytest.raises(ValueError, match="3 output tuples"):
        ResponseMeter().add_train(3, 5.0, ())
