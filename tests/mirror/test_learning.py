"""Change rates are learned from polls that say only "changed" or "not"."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from freshet.mirror import Learner, RatePrior
from freshet.mirror.learning import (
    NaiveLearner,
    bias_reduced,
    by_last_modified,
    from_accesses,
    from_readers,
    from_users,
    maximum_likelihood,
    naive,
)
from freshet.mirror.surprise import Surprise
from freshet.model import UserError


@pytest.mark.parametrize(("rate", "share"), [(1.0, 0.63), (3.0, 0.32)])
def test_changes_over_time_are_biased_and_the_estimator_is_not(rate: float, share: float) -> None:
    changes = np.random.default_rng(1).binomial(50, -np.expm1(-rate), 5000)
    assert np.mean([naive(50, int(each), 1.0) for each in changes]) / rate == pytest.approx(share, abs=0.01)
    assert np.mean([bias_reduced(50, int(each), 1.0) for each in changes]) / rate == pytest.approx(1.0, abs=0.02)


@given(
    st.lists(st.tuples(st.floats(0.01, 100.0), st.booleans()), min_size=2, max_size=30).filter(
        lambda polls: len({changed for _, changed in polls}) == 2
    )
)
def test_maximum_likelihood_is_where_a_general_solver_finds_it(polls: list[tuple[float, bool]]) -> None:
    intervals, changed = (np.array(column) for column in zip(*polls, strict=True))

    def unlikely(log_rate: float) -> float:
        expected = np.exp(log_rate) * intervals
        return float(expected[~changed].sum() - np.log(-np.expm1(-expected[changed])).sum())

    found = minimize_scalar(unlikely, bounds=(-25.0, 25.0), method="bounded", options={"xatol": 1e-10})
    ours = maximum_likelihood(intervals, changed)
    assert unlikely(np.log(ours)) <= found.fun + 1e-6


def test_last_modified_tells_more() -> None:
    rng = np.random.default_rng(2)
    rate, count = 3.0, 20_000
    ages = rng.exponential(1.0 / rate, count)
    seen = np.where(ages < 1.0, ages, np.nan)
    assert by_last_modified(np.ones(count), seen) == pytest.approx(rate, rel=0.03)


def poll_often(learner: Learner, rate: float, *, polls: int, gap: float, seed: int, dated: bool = False) -> float:
    rng = np.random.default_rng(seed)
    learner.polled(0, 0.0, changed=True)
    for number in range(1, polls + 1):
        since = rng.exponential(1.0 / rate)
        changed = since < gap
        learner.polled(0, number * gap, changed, number * gap - since if dated and changed else None)
    return learner.rate(0)


@pytest.mark.parametrize("gap", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("dated", [False, True])
def test_a_learner_finds_the_rate(gap: float, dated: bool) -> None:
    prior = RatePrior(mean=1.0, shape=0.5)
    learners = [Learner(1, prior=prior, memory=None, drifts=False) for _ in range(5)]
    found = [
        poll_often(learner, 2.0, polls=2000, gap=gap, seed=seed, dated=dated) for seed, learner in enumerate(learners)
    ]
    assert np.mean(found) == pytest.approx(2.0, rel=0.06)


def test_a_naive_learner_does_not() -> None:
    learner = NaiveLearner(1, memory=None, drifts=False)
    assert poll_often(learner, 2.0, polls=2000, gap=1.0, seed=1) < 1.0


def test_nothing_is_known_of_a_new_element_but_the_prior() -> None:
    learner = Learner(2, prior=RatePrior(mean=0.3))
    assert learner.rates() == pytest.approx([0.3, 0.3])
    learner.polled(1, 100.0, changed=True)
    assert learner.rate(1) == pytest.approx(0.3), "the first poll has no say"
    learner.polled(1, 200.0, changed=False)
    assert learner.rate(1) < 0.3
    learner.add(1)
    assert learner.rate(2) == pytest.approx(0.3)


def test_old_polls_are_forgotten() -> None:
    slow, fast = 0.05, 2.0
    learner, elephant = Learner(1, memory=50.0), Learner(1, memory=None, drifts=False)
    for each in (learner, elephant):
        rng = np.random.default_rng(3)
        for number in range(800):
            rate = slow if number < 400 else fast
            each.polled(0, float(number), changed=bool(rng.random() < -np.expm1(-rate)))
    assert learner.rate(0) > 2.5 * elephant.rate(0)


def test_a_drift_is_noticed_within_few_polls_and_hardly_ever_without_one() -> None:
    learner = Learner(1, memory=50.0)
    rng = np.random.default_rng(4)
    polls = iter(range(10_000))
    for number in polls:
        learner.polled(0, float(number), changed=bool(rng.random() < -np.expm1(-0.5)))
        if number % 20 == 0:
            learner.rates()
        if number == 1000:
            break
    assert learner.drifts <= 1
    before = learner.drifts
    for number in polls:
        learner.polled(0, float(number), changed=True)
        if learner.drifts > before:
            break
    assert number - 1000 < 30
    assert learner.rate(0) > 1.5


def test_the_prior_follows_the_population() -> None:
    rng = np.random.default_rng(5)
    rates = rng.gamma(4.0, 0.5, 200)
    learner = Learner(200, prior=RatePrior(mean=50.0))
    for number in range(60):
        for element, rate in enumerate(rates):
            learner.polled(element, 0.5 * number, changed=bool(rng.random() < -np.expm1(-0.5 * rate)))
    learner.fit_prior()
    assert learner.prior.mean == pytest.approx(rates.mean(), rel=0.15)


def test_a_learner_survives_json() -> None:
    learner = Learner(3)
    for number in range(20):
        learner.polled(number % 2, float(number), changed=number % 3 == 0)
    told = json.dumps(learner.state(), default=lambda array: array.tolist())
    other = Learner()
    other.restore(json.loads(told))
    assert other.rates().tolist() == learner.rates().tolist()
    other.polled(2, 30.0, changed=True)
    assert len(other) == 3


def test_what_an_older_version_stored_is_taken_over() -> None:
    old = {
        "prior": [1.0, 1.0], "last": [10.0, float("nan")], "changes": [6.0, 0.0], "changed_time": [12.0, 0.0],
        "quiet_time": [8.0, 0.0], "dated": [0.0, 0.0], "trust": [1.0, 1.0], "faster": [0.0, 0.0],
        "slower": [0.0, 0.0], "believed": [0.5, float("nan")],
    }  # fmt: skip
    learner = Learner()
    learner.restore(old)
    expected = Learner(2, memory=None, drifts=False)
    for number in range(11):
        expected.polled(0, 2.0 * number, changed=number <= 6)
    assert learner.rates() == pytest.approx(expected.rates())
    learner.polled(0, 12.0, changed=True)
    assert learner.evidence().tolist() == pytest.approx([6 * 0.98 + 1, 0.0])


def found_by(intervals: Iterable[float], *, seed: int, learner: Learner) -> tuple[float, float]:
    """What a learner finds at half a change a second, and the rate of the greatest likelihood."""
    rng = np.random.default_rng(seed)
    now, gaps, answers = 0.0, list(intervals), []
    learner.polled(0, now, changed=False)
    for gap in gaps:
        now += gap
        answers.append(bool(rng.random() < -np.expm1(-0.5 * gap)))
        learner.polled(0, now, answers[-1])
    return learner.rate(0), maximum_likelihood(np.array(gaps), np.array(answers))


@pytest.mark.parametrize("pause", [60.0, 600.0, 8 * 3600.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_pause_does_not_spoil_what_was_learned(pause: float, seed: int) -> None:
    learner, rng = Learner(1, prior=RatePrior(mean=0.5)), np.random.default_rng(100 + seed)
    # Polls that come a little early or late fill all classes before the pause.
    before, _ = found_by(rng.uniform(1.8, 2.2, 200), seed=seed, learner=learner)
    now = learner.last_poll(0)
    assert now is not None
    learner.rates()
    learner.polled(0, now + pause, changed=True)
    assert learner.rate(0) == pytest.approx(before, rel=0.1)

    twin = Learner(1)
    twin.restore(learner.state())
    changes = rng.random(300) < -np.expm1(-1.0)
    worst = 0.0
    without = Learner(1, prior=RatePrior(mean=0.5))
    found_by(np.random.default_rng(100 + seed).uniform(1.8, 2.2, 200), seed=seed, learner=without)
    without.rates()
    for number, changed in enumerate(changes.tolist(), 1):
        twin.polled(0, now + pause + 2.0 * number, changed)
        without.polled(0, now + 2.0 * number, changed)
        worst = max(worst, abs(twin.rate(0) / without.rate(0) - 1.0))
    assert worst < 0.1, "nor does it while it is forgotten"


GAPS = {
    "two lengths": lambda rng: rng.choice([0.5, 8.0], 400),
    "Poisson": lambda rng: rng.exponential(2.0, 400),
    "four lengths": lambda rng: rng.choice([0.25, 1.0, 4.0, 16.0], 400),
}


@pytest.mark.parametrize("kind", GAPS)
@pytest.mark.parametrize("seed", range(5))
def test_intervals_of_many_lengths_give_the_greatest_likelihood(kind: str, seed: int) -> None:
    learner = Learner(1, prior=RatePrior(mean=0.5, shape=0.01), memory=None, drifts=False)
    found, likeliest = found_by(GAPS[kind](np.random.default_rng(50 + seed)), seed=seed, learner=learner)
    assert found == pytest.approx(likeliest, rel=0.1)


@given(st.integers(1, 60), st.integers(0, 60), st.floats(0.001, 1000.0))
def test_equal_intervals_give_the_bias_reduced_rate(polls: int, found: int, gap: float) -> None:
    # Half a quiet interval is what the estimator adds to the polls, and here to the prior's time.
    changes = min(found, polls)
    learner = Learner(1, prior=RatePrior(mean=2e-9 / gap, shape=1e-9), memory=None, drifts=False)
    learner.polled(0, 0.0, changed=False)
    for number in range(1, polls + 1):
        learner.polled(0, number * gap, changed=number <= changes)
    assert learner.rate(0) == pytest.approx(bias_reduced(polls, changes, gap), rel=1e-6, abs=1e-6 / gap)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bias_reduced(5, 6, 1.0), "5 polls cannot have found 6 changes"),
        (lambda: bias_reduced(5, -1, 1.0), "5 polls cannot have found -1 changes"),
        (lambda: naive(0, 0, 1.0), "at least one poll, not 0"),
        (lambda: naive(5, 1, 0.0), "the interval between polls is 0.0"),
        (lambda: maximum_likelihood(np.array([1.0, -2.0]), np.array([True, False])), "row 1: the interval is -2.0"),
        (lambda: maximum_likelihood(np.array([1.0]), np.array([True, False])), "1 intervals, but 2 answers"),
    ],
)
def test_counts_that_no_polls_can_have_given_are_refused(call: Callable[[], float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        call()


def test_a_clock_that_goes_back_does_no_harm() -> None:
    learner = Learner(1)
    learner.polled(0, 100.0, changed=True)
    learner.polled(0, 50.0, changed=True, last_modified=80.0)
    learner.polled(0, 60.0, changed=False, last_modified=1e9)
    assert 0.0 < learner.rate(0) < np.inf


def test_surprise_is_0_while_rates_hold_and_rises_when_they_do_not() -> None:
    rng = np.random.default_rng(6)
    surprise = Surprise()
    for _ in range(3000):
        surprise.saw(rate=0.5, seconds=1.0, changed=bool(rng.random() < -np.expm1(-0.5)))
    assert surprise.excess == 0.0
    for _ in range(1000):
        surprise.saw(rate=0.5, seconds=1.0, changed=bool(rng.random() < -np.expm1(-5.0)))
    assert surprise.excess > 0.1


def test_worth_of_several_users_readers_and_accesses() -> None:
    assert from_users({"a": [1, 0], "b": [0, 5]}, {"a": 3.0}) == pytest.approx([0.75, 0.25])
    assert from_readers(2, [(1.0, None), (0.5, [1])]).tolist() == [1.0, 1.5]
    assert from_accesses(3, [1, 1, 2], unseen=0.0) == pytest.approx([0.0, 2 / 3, 1 / 3])
    with pytest.raises(UserError, match="names element 3"):
        from_accesses(3, [3])
    with pytest.raises(UserError, match="row 0: the worth to a is -1"):
        from_users({"a": [-1]}, {})


def test_a_rate_that_was_given_holds_until_polls_say_more() -> None:
    learner = Learner(2, prior=RatePrior(mean=1.0))
    learner.assume(0, 0.01)
    assert learner.rates().tolist() == pytest.approx([0.01, 1.0], rel=0.1)
    for second in range(40):
        learner.polled(0, float(second), changed=second % 2 == 0)
    assert learner.rate(0) > 0.3
