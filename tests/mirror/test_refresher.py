"""What to poll next: the plan is kept, the budget is never exceeded, and what the plan leaves out is explored."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.mirror import Elements, Learner, RatePrior, Refresher, plan
from freshet.mirror.allowance import Allowance
from freshet.mirror.floors import Floors
from freshet.mirror.learning import NaiveLearner
from freshet.mirror.simulator import MirrorWorkload, RefreshingWorld
from freshet.model import UserError


@given(
    st.floats(0.1, 1000.0),
    st.lists(st.tuples(st.floats(0.0, 20.0), st.floats(0.01, 5.0)), min_size=1, max_size=300),
)
def test_no_ten_seconds_cost_more_than_the_budget(budget: float, wishes: list[tuple[float, float]]) -> None:
    allowance, now, taken = Allowance(budget), 0.0, []
    for pause, cost in wishes:
        now += pause if pause > 10.0 else pause / budget
        if allowance.take(now, cost):
            taken.append((now, cost))
    for begin, first in taken:
        spent = sum(cost for when, cost in taken if begin <= when < begin + 10.0)
        assert spent <= 10.0 * budget * (1.0 + 1e-6) or spent == first


@given(st.data(), st.integers(1, 20))
def test_no_ten_seconds_bring_the_other_side_more_than_the_budget(data: st.DataObject, budget: int) -> None:
    allowance, now = Allowance(float(budget)), 0.0
    under_way = list[tuple[float, float, int]]()
    received = list[float]()
    for _ in range(data.draw(st.integers(1, 200))):
        now += data.draw(st.floats(0.0, 2.0)) / budget
        for ended, _, number in sorted(each for each in under_way if each[0] <= now):
            allowance.end(ended, number)
        under_way = [each for each in under_way if each[0] > now]
        if allowance.affords(now, 1.0):
            took = data.draw(st.floats(0.0, 9.0))
            received.append(now + took * data.draw(st.floats(0.0, 1.0)))
            under_way.append((now + took, now, allowance.begin(now, 1.0)))
    for begin in received:
        assert sum(begin <= each < begin + 10.0 for each in received) <= 10 * budget


def run(refresher: Refresher, begin: float, end: float, step: float) -> list[tuple[float, int]]:
    """Polls what is due; nothing ever changes."""
    polls = []
    for now in np.arange(begin, end, step).tolist():
        for element in refresher.due(now, 1000):
            refresher.polled(element, now, changed=False)
            polls.append((now, element))
    return polls


def known(rates: list[float], budget: float) -> Refresher:
    count = len(rates)
    made = Refresher(Learner(count), np.ones(count), np.ones(count), budget, exploration=0.0, known=np.array(rates))
    made.replan(0.0)
    return made


def test_polls_are_as_many_as_planned() -> None:
    rates = [0.2, 0.5, 1.0, 1.5, 30.0]
    refresher = known(rates, 2.0)
    counts = Counter(element for _, element in run(refresher, 0.0, 1000.0, 0.02))
    wanted = plan(Elements.of(rates), 2.0).frequencies
    assert [counts[element] / 1000.0 for element in range(5)] == pytest.approx(wanted, rel=0.03, abs=0.005)


def test_a_pause_is_not_made_up_for() -> None:
    refresher = known([0.5] * 50, 20.0)
    run(refresher, 0.0, 30.0, 0.01)
    after = [now for now, _ in run(refresher, 500.0, 530.0, 0.01)]
    for begin in after:
        assert sum(begin <= now < begin + 10.0 for now in after) <= 200
    assert sum(now < 501.0 for now in after) <= 22


def test_an_element_is_out_only_once() -> None:
    refresher = known([1.0, 1.0], 10.0)
    first = refresher.due(0.0, 10)
    assert refresher.due(5.0, 10) == [1 - first[0]]
    assert refresher.due(20.0, 10) == []
    refresher.put_off(first[0], until=30.0)
    assert refresher.due(29.0, 10) == []
    assert refresher.due(31.0, 10) == first


def test_others_have_the_share_of_what_does_not_answer() -> None:
    refresher = known([1.0, 1.0], 2.0)
    run(refresher, 0.0, 10.0, 0.1)
    whole = refresher.perceived or 0.0
    assert not refresher.wants_replan()
    refresher.put_off(0, until=50.0)
    assert refresher.perceived == pytest.approx(whole / 2.0), "its worth counts, its freshness does not"
    assert refresher.wants_replan()
    refresher.replan(10.0)
    assert refresher.frequencies.tolist() == pytest.approx([0.0, 2.0])
    assert whole / 2.0 < (refresher.perceived or 0.0) < 0.5
    polled = run(refresher, 10.0, 60.0, 0.1)
    assert [now for now, element in polled if element == 0][:1] == [pytest.approx(50.5, abs=0.5)]
    assert refresher.wants_replan()
    refresher.replan(60.0)
    assert refresher.frequencies.tolist() == pytest.approx([1.0, 1.0])
    assert refresher.perceived == pytest.approx(whole)


def test_what_did_not_answer_and_was_worth_nothing_for_a_while_is_polled_again() -> None:
    refresher = known([1.0, 1.0], 2.0)
    run(refresher, 0.0, 10.0, 0.1)
    for worth in (0.0, 1.0):
        refresher.put_off(0, until=12.0)
        refresher.set_worth(0, worth)
        refresher.replan(10.0)
    refresher.put_off(1, until=12.0)
    for more in (0.0, 1.0):
        refresher.weigh(np.array([1.0, more]))
        refresher.replan(10.0)
    assert {element for _, element in run(refresher, 10.0, 20.0, 0.1)} == {0, 1}


def test_new_elements_come_first_but_not_alone() -> None:
    refresher = known([1.0] * 10, 10.0)
    run(refresher, 0.0, 10.0, 0.05)
    refresher.add(np.ones(100), np.ones(100), known=np.full(100, 20.0))
    refresher.replan(10.0)
    polled = [element for _, element in run(refresher, 10.0, 20.0, 0.05)]
    assert 40 <= sum(element >= 10 for element in polled) <= 100
    assert len({element for element in polled if element < 10}) == 10


def test_bytes_that_were_not_expected_are_paid_for() -> None:
    refresher = known([1.0] * 4, 1.0)
    (element,) = refresher.due(0.0, 10)
    refresher.polled(element, 0.0, changed=False, cost=6.0)
    assert refresher.due(5.0, 10) == []
    assert refresher.next_due(5.0) == pytest.approx(1.0, abs=0.1)


def test_state_is_taken_back() -> None:
    refresher = known([0.5] * 5, 1.0)
    run(refresher, 0.0, 20.0, 0.1)
    other = Refresher(Learner(), np.ones(5), np.ones(5), 1.0, exploration=0.0, known=np.full(5, 0.5))
    other.learner.restore(refresher.learner.state())
    other = Refresher(other.learner, np.ones(5), np.ones(5), 1.0, exploration=0.0, known=np.full(5, 0.5))
    other.restore(refresher.state(), 20.0)
    assert [e for _, e in run(other, 20.0, 40.0, 0.1)] == [e for _, e in run(refresher, 20.0, 40.0, 0.1)]


def test_exploration_polls_what_the_plan_leaves_out() -> None:
    rates = np.array([0.2] * 5 + [50.0] * 5)
    count = {}
    for exploration in (0.0, 0.1):
        refresher = Refresher(Learner(10), np.ones(10), np.ones(10), 1.0, exploration=exploration, known=rates)
        run(refresher, 0.0, 10.0, 0.05)
        refresher.replan(10.0, always=True)
        polled = Counter(element for _, element in run(refresher, 10.0, 1010.0, 0.05))
        count[exploration] = sum(polled[element] for element in range(5, 10))
    assert count[0.0] == 0
    assert 80 <= count[0.1] <= 120


def promised(freshness: list[float], age: list[float]) -> Floors:
    return Floors(np.array(freshness), np.array(age))


def test_floors_are_kept_also_where_they_do_not_pay() -> None:
    rates = [1.0, 1.0, 40.0]
    floors = promised([0.0, 0.0, 0.02], [np.inf] * 3)
    refresher = Refresher(
        Learner(3), np.ones(3), np.ones(3), 3.0, exploration=0.1, floors=floors, known=np.array(rates)
    )
    refresher.replan(0.0)
    assert plan(Elements.of(rates), 3.0).frequencies[2] == 0.0
    assert refresher.frequencies[2] == pytest.approx(0.8)
    assert refresher.floors_need == pytest.approx(0.8)
    assert refresher.frequencies.sum() == pytest.approx(3.0), "there is nothing to explore"


def test_floors_beyond_the_budget_share_it_and_say_what_they_need() -> None:
    floors = promised([0.0, 0.9], [np.inf, np.inf])
    refresher = Refresher(
        Learner(2), np.ones(2), np.ones(2), 1.0, exploration=0.1, floors=floors, known=np.array([0.1, 1.0])
    )
    refresher.replan(0.0)
    assert refresher.floors_need > 4.0
    assert refresher.frequencies.tolist() == [0.0, pytest.approx(1.0)]
    refresher.set_floor(1, 0.0, np.inf)
    refresher.replan(0.0)
    assert refresher.floors_need == 0.0
    assert refresher.frequencies[0] > 0.0


def test_new_elements_bring_their_floors() -> None:
    refresher = known([1.0], 2.0)
    refresher.add(np.ones(1), np.ones(1), np.array([40.0]), promised([0.0], [0.9]))
    refresher.replan(0.0)
    assert refresher.frequencies[1] > 0.5


def test_another_worth_is_another_plan() -> None:
    refresher = known([1.0, 1.0], 1.0)
    run(refresher, 0.0, 20.0, 0.1)
    assert refresher.frequencies.tolist() == pytest.approx([0.5, 0.5])
    refresher.weigh(np.array([1.0, 0.0]))
    assert refresher.wants_replan()
    assert {element for _, element in run(refresher, 20.0, 40.0, 0.1)} == {0}
    refresher.replan(40.0)
    assert refresher.frequencies.tolist() == pytest.approx([1.0, 0.0])
    refresher.weigh(np.array([1.0, 1.0]))
    refresher.replan(40.0)
    assert {element for _, element in run(refresher, 40.0, 60.0, 0.1)} == {0, 1}


def test_a_new_plan_begins_where_the_last_one_ended() -> None:
    """Also if what changed was changed one by one; the result is the plan from scratch."""
    rng, count = np.random.default_rng(3), 20_000
    rates, worth = rng.gamma(1.0, 2.0, count), 1.0 / np.arange(1, count + 1)
    refresher = Refresher(Learner(count), worth, np.ones(count), count / 2, exploration=0.0, known=rates.copy())
    refresher.replan(0.0)
    rates[1000:1200] *= 3.0
    for element in range(1000, 1200):
        refresher.set_known(element, float(rates[element]))
    refresher.replan(1.0)
    assert refresher.plan is not None
    anew = plan(Elements.of(rates, worth), count / 2)
    assert refresher.frequencies == pytest.approx(anew.frequencies, rel=1e-3, abs=1e-6)
    assert refresher.plan.perceived == pytest.approx(anew.perceived, abs=1e-9)
    assert refresher.plan.evaluations < anew.evaluations


def test_an_element_that_was_never_polled_and_comes_back_is_polled() -> None:
    refresher = known([1.0, 1.0], 1.0)
    (element,) = refresher.due(0.0, 1)
    refresher.set_worth(element, 0.0)
    refresher.put_off(element, np.inf)
    refresher.set_worth(element, 1.0)
    refresher.replan(1.0)
    assert element in {each for _, each in run(refresher, 1.0, 10.0, 0.1)}


def test_nonsense_is_refused() -> None:
    with pytest.raises(UserError, match="share for exploration is 1"):
        Refresher(Learner(1), np.ones(1), np.ones(1), 1.0, exploration=1.0)
    with pytest.raises(UserError, match="budget is 0"):
        Refresher(Learner(1), np.ones(1), np.ones(1), 0.0)


BED = MirrorWorkload(objects=200, updates=400.0, syncs=100.0, theta=1.0, seed=7)


def world(learner: type[Learner] = Learner, exploration: float = 0.02) -> RefreshingWorld:
    prior = RatePrior(mean=BED.syncs / BED.objects)
    return RefreshingWorld(
        BED.elements(), BED.syncs, learner(BED.objects, prior=prior), exploration=exploration, seed=7
    )


def test_learned_rates_are_nearly_as_good_as_known_ones() -> None:
    learned = world().run(30 * BED.objects).share
    assert learned > 0.96
    assert world(NaiveLearner).run(30 * BED.objects).share < learned


def test_elements_that_slow_down_are_found_only_by_exploration() -> None:
    elements = BED.elements()
    rates = elements.rates.copy()
    never = np.flatnonzero(plan(elements, BED.syncs).frequencies == 0.0)
    rates[never[::2]] /= 50.0
    found = {}
    for exploration in (0.0, 0.05):
        one = world(exploration=exploration)
        one.run(30 * BED.objects)
        one.drift(rates)
        found[exploration] = one.run(80 * BED.objects).share
    assert found[0.05] > found[0.0] + 0.02
