import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.arrivals import Arrivals, BModel, Bursts, Constant, Poisson, RateSchedule
from freshet.model import UserError

seeds = st.integers(0, 2**32)
# Not too low: a span or piece without tuples costs as much as a full one.
rates = st.floats(100.0, 5000.0)


@st.composite
def processes(draw) -> Arrivals:
    kind = draw(st.sampled_from(["constant", "poisson", "b-model", "schedule", "bursts"]))
    if kind == "constant":
        return Constant(draw(rates))
    if kind == "poisson":
        return Poisson(draw(rates), draw(seeds))
    if kind == "b-model":
        return BModel(
            draw(rates), draw(st.floats(0.5, 1.0)), draw(st.floats(1.0, 5.0)), draw(st.integers(0, 8)), draw(seeds)
        )
    if kind == "schedule":
        pieces = draw(st.lists(st.tuples(st.floats(0.5, 3.0), st.sampled_from([0.0, 10.0, 900.0])), max_size=3))
        return RateSchedule([*pieces, (1.0, 500.0)], draw(st.booleans()), draw(seeds))
    return Bursts(draw(processes()), draw(st.integers(1, 40)))


@settings(max_examples=40, deadline=None)
@given(processes(), st.integers(1, 9000))
def test_times_never_go_back_and_begin_after_zero(process, count):
    times = process.first(count)
    assert np.all(np.diff(times) >= 0)
    assert np.all(times >= 0)


@settings(max_examples=40, deadline=None)
@given(processes(), st.lists(st.integers(1, 4000), max_size=4))
def test_any_cut_with_a_restart_at_each_gives_the_same_times(process, cuts):
    whole = process.first(sum(cuts))
    parts, position = [], None
    for count in cuts:
        cursor = process.cursor(position)
        parts.append(cursor.take(count))
        position = json.loads(json.dumps(cursor.position))
    assert np.array_equal(np.concatenate([np.empty(0), *parts]), whole)
    assert position is None or position["index"] == len(whole)


@settings(max_examples=40, deadline=None)
@given(processes(), st.lists(st.floats(0.0, 4.0), max_size=8), st.integers(1, 700))
def test_taking_by_time_gives_what_is_due_and_nothing_else(process, moments, limit):
    whole = process.first(6000)
    cursor, taken = process.cursor(), 0
    for moment in np.cumsum(moments):
        part = cursor.take_until(moment, limit)
        due = np.searchsorted(whole, moment, side="right") if moment < whole[-1] else None
        assert np.array_equal(part, whole[taken : taken + len(part)])
        taken += len(part)
        if due is not None:
            assert len(part) == limit or taken == due
        if taken >= len(whole) - limit:
            break


@pytest.mark.parametrize("seed", range(5))
def test_poisson_has_exponential_gaps(seed):
    gaps = np.diff(Poisson(200.0, seed).first(50_000)) * 200.0
    # Five standard errors of the mean (1/sqrt n) and of the variance (sqrt(8/n)) of an exponential.
    assert abs(gaps.mean() - 1.0) < 5 / np.sqrt(50_000)
    assert abs(gaps.var() - 1.0) < 5 * np.sqrt(8 / 50_000)
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 5 / np.sqrt(50_000)


def test_seeds_differ_and_repeat():
    assert np.array_equal(Poisson(10.0, 1).first(100), Poisson(10.0, 1).first(100))
    assert not np.array_equal(Poisson(10.0, 1).first(100), Poisson(10.0, 2).first(100))


@given(st.integers(1, 50), seeds)
@settings(max_examples=30, deadline=None)
def test_a_burst_arrives_with_its_first_tuple(size, seed):
    inner = Poisson(100.0, seed)
    count = 10_000
    expected = np.repeat(inner.first(count)[::size], size)[:count]
    assert np.array_equal(Bursts(inner, size).first(count), expected)


@given(rates, st.floats(0.5, 1.0), st.integers(0, 10), seeds)
@settings(max_examples=50, deadline=None)
def test_the_b_model_keeps_all_tuples_of_a_span(rate, bias, levels, seed):
    model = BModel(rate, bias, span=2.0, levels=levels, seed=seed)
    counts = [model.counts(number) for number in range(4)]
    assert all(len(part) == 2**levels and part.min() >= 0 for part in counts)
    assert sum(part.sum() for part in counts) == np.floor(4 * (rate * 2.0))
    times = model.first(int(counts[0].sum()))
    assert np.array_equal(np.histogram(times, bins=2**levels, range=(0, 2.0))[0], counts[0])


@given(rates, seeds)
@settings(max_examples=30, deadline=None)
def test_without_bias_the_b_model_is_even(rate, seed):
    counts = BModel(rate, 0.5, span=8.0, levels=7, seed=seed).counts(0)
    assert counts.max() - counts.min() <= 1


def test_the_b_model_gives_a_half_its_share():
    counts = BModel(10_000.0, 0.8, span=1.0, levels=1, seed=4)
    assert {tuple(sorted(counts.counts(number).tolist())) for number in range(50)} == {(2000, 8000)}


def test_more_bias_is_more_bursty():
    def spread(bias: float) -> float:
        counts = np.concatenate([BModel(500.0, bias, 16.0, 8, seed=5).counts(number) for number in range(8)])
        return float(counts.var() / counts.mean())

    assert spread(0.5) < spread(0.6) < spread(0.7) < spread(0.8)


def test_a_schedule_has_the_rate_of_each_piece():
    schedule = RateSchedule([(10.0, 1000.0), (5.0, 0.0), (10.0, 100.0)], seed=9)
    times = schedule.first(200_000)
    cycles = int(times[-1] // 25)
    phase = times[times < cycles * 25] % 25
    fast, slow = np.sum(phase < 10), np.sum(phase >= 15)
    assert np.sum((phase >= 10) & (phase < 15)) == 0
    assert abs(fast - 10_000 * cycles) < 5 * np.sqrt(10_000 * cycles)
    assert abs(slow - 1000 * cycles) < 5 * np.sqrt(1000 * cycles)


def test_a_schedule_that_does_not_repeat_ends():
    cursor = RateSchedule([(1.0, 10.0), (1.0, 0.0)], repeat=False, seed=1).cursor()
    times = cursor.take(1000)
    assert 0 < len(times) < 100
    assert cursor.peek() is None
    assert len(cursor.take(1)) == 0
    again = RateSchedule([(1.0, 10.0), (1.0, 0.0)], repeat=False, seed=1).cursor(cursor.position)
    assert again.peek() is None


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Poisson(0.0), "positive"),
        (lambda: Poisson(float("nan")), "positive"),
        (lambda: Constant(-1.0), "positive"),
        (lambda: Poisson(1.0, seed=-1), "seed"),
        (lambda: Bursts(Constant(1.0), 0), "at least 1"),
        (lambda: BModel(1.0, 0.4), "0.5"),
        (lambda: BModel(1.0, 0.7, span=0.0), "span"),
        (lambda: BModel(1.0, 0.7, levels=50), "levels"),
        (lambda: BModel(1e9, 0.7), "shorten"),
        (lambda: RateSchedule([]), "at least one"),
        (lambda: RateSchedule([(0.0, 1.0)]), "last"),
        (lambda: RateSchedule([(1.0, -1.0)]), "pause"),
        (lambda: RateSchedule([(1.0, 0.0)]), "every rate"),
    ],
)
def test_wrong_parameters_are_refused_in_words(make, says):
    with pytest.raises(UserError, match=says):
        make()
