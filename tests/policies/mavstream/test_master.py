"""Several strategies at once: who gets how much time, who owns what, and that nothing is lost or waits for ever."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policies.mavstream.test_strategies import waits
from tests.policies.mavstream.workload import QUERY, run, streams

from freshet.engine.events import Decided, Event
from freshet.model import Decision, Step, UserError, View
from freshet.policies import Everything, FirstComeFirstServed, MasterScheduler, RoundRobin, forms
from freshet.policies.ageing import Ageing
from freshet.policies.mavstream.master import predicted
from freshet.simulation.executor import Profile
from freshet.simulation.view import RecordView
from freshet.simulation.world import SimulatedQuery, World
from freshet.testing.policies import RandomStrategies


def equal_queries(count: int) -> RecordView:
    """Queries of one operator each that always have tuples, a second's work for each hundred."""
    view = RecordView()
    for number in range(count):
        view.add(f"q{number}", [(0.01, 1.0)])
    return waits(view, *range(count))


def shares(master: MasterScheduler, view: RecordView, owners: Mapping[int, str], decisions: int) -> dict[str, float]:
    """The share of the time that each strategy gets while all queues stay full."""
    seconds = dict.fromkeys(owners.values(), 0.0)
    for _ in range(decisions):
        (step,) = master.decide(view).steps
        (owner,) = {owners[number] for number in step.nodes}
        seconds[owner] += predicted(view, step)
        master.completed(view, step.nodes)
    return {owner: each / sum(seconds.values()) for owner, each in seconds.items()}


def test_time_goes_by_ready_operators() -> None:
    view, master = equal_queries(4), MasterScheduler(RoundRobin(rows=10), quantum=0.05)
    master.assign("q0", "pcs(10)")
    owners = {0: "pcs", 1: "rest", 2: "rest", 3: "rest"}
    assert shares(master, view, owners, 400) == pytest.approx({"pcs": 1 / 4, "rest": 3 / 4}, abs=0.02)


def test_large_steps_give_no_more_time() -> None:
    view, master = equal_queries(2), MasterScheduler(Everything(), quantum=0.05)
    master.assign("q0", "pcs(10)")
    assert shares(master, view, {0: "pcs", 1: "rest"}, 400) == pytest.approx({"pcs": 0.5, "rest": 0.5}, abs=0.02)


def test_a_query_that_is_cut_finer_gets_no_more_time() -> None:
    view = RecordView()
    for name in ("whole", "pieces"):
        view.add(name, [(0.01, 0.2), (0.01, 0.9), (0.01, 1.0)])
    master = MasterScheduler(FirstComeFirstServed())
    master.assign("whole", "pcs(10)")
    master.assign("pieces", "segment(10)")
    owners = dict.fromkeys((0, 1, 2), "pcs") | dict.fromkeys((3, 4, 5), "segment")
    found = shares(master, waits(view, 0, 3), owners, 400)
    assert found == pytest.approx({"pcs": 0.5, "segment": 0.5}, abs=0.02)


def test_a_violated_class_gets_more_time_by_its_weight() -> None:
    view, master = equal_queries(2), MasterScheduler(RoundRobin(rows=10), quantum=0.05)
    master.assign("q0", "pcs(10)")
    master.urge("q0", 1.0)
    owners = {0: "pcs", 1: "rest"}
    assert shares(master, view, owners, 300) == pytest.approx({"pcs": 2 / 3, "rest": 1 / 3}, abs=0.02)
    master.urge("q0", 0.0)
    assert shares(master, view, owners, 300) == pytest.approx({"pcs": 1 / 2, "rest": 1 / 2}, abs=0.02)


def test_a_strategy_that_was_alone_owes_nothing() -> None:
    view, master = equal_queries(2), MasterScheduler(RoundRobin(rows=10), quantum=0.05)
    master.assign("q0", "pcs")
    del view.ready[1]
    for _ in range(50):
        assert master.decide(view).steps[0].nodes == (0,)
    master.arrived(waits(view, 1), (1,))
    assert shares(master, view, {0: "pcs", 1: "rest"}, 400) == pytest.approx({"pcs": 0.5, "rest": 0.5}, abs=0.02)


def test_shared_work_runs_under_the_strategy_of_the_greatest_class_weight() -> None:
    view = RecordView.over({0: (1, 2), 1: (), 2: ()})
    master = MasterScheduler(Everything())
    master.assign("q0", "pcs(7)", weight=0.5)
    assert master.decide(waits(view, 0)).steps == (Step((0, 1), 7),), "what q1 reads waits in its queue"
    master.assign("q1", "segment(9)", weight=1.0)
    (step,) = master.decide(view).steps
    assert step.rows == 9
    assert 0 in step.nodes
    assert 1 not in step.nodes
    master.forget("q1")
    assert master.decide(view).steps == (Step((0, 1), 7),)


def test_a_query_keeps_its_strategy_when_its_numbers_change() -> None:
    view, master = equal_queries(2), MasterScheduler(RoundRobin())
    master.assign("q1", "pcs(5)")
    del view.ready[0]
    assert master.decide(view).steps == (Step((1,), 5),)
    view.queries[0].name, view.queries[1].name = "q1", "q0"
    for number in (0, 1):
        master.changed(view, number)
    assert master.decide(view).steps == (Step((1,), None),)


def test_a_strategy_changes_between_steps_and_the_reason_names_it() -> None:
    view, master = equal_queries(1), MasterScheduler(FirstComeFirstServed())
    assert str(master.why(view, master.decide(view))).startswith("fcfs runs 1 of 1, oldest tuple first: q0")
    master.assign("q0", "pcs(5)")
    assert master.strategies() == {"q0": "pcs(5)"}
    reason = master.why(view, master.decide(view))
    assert str(reason).startswith("pcs(5) runs 1 of 1, greatest path capacity: q0 (capacity 100, operators 1")
    assert reason.figures["strategies"] == 2
    master.assign("q0", None)
    assert master.why(view, master.decide(view)).policy == "fcfs"
    assert master.strategies() == {}


def test_queries_without_a_strategy_go_by_age_only_if_the_reason_says_so() -> None:
    view, master = equal_queries(1), MasterScheduler(Ageing(FirstComeFirstServed(), 5.0))
    for now, policy in ((1.0, "fcfs"), (view.operators[0].head_arrival + 5.0, "ageing")):
        view.now = now
        assert master.why(view, master.decide(view)).policy == policy


def test_what_is_no_policy_is_refused_at_once() -> None:
    master = MasterScheduler(Everything())
    with pytest.raises(UserError, match="there is no policy 'psc'"):
        master.assign("q", "psc")
    assert master.strategies() == {}
    with pytest.raises(UserError, match="a quantum of 0 s is empty"):
        MasterScheduler(Everything(), quantum=0)


# In simulated time


def overlapping() -> list[SimulatedQuery]:
    """Queries that share work, beside one of two joins."""
    queries = [
        SimulatedQuery.straight(
            f"o{number}",
            f"s{number % 2}",
            [Profile(2e-3, 0.5), Profile(1e-3 * (1 + number % 3), 0.8), Profile(1e-3)],
            shared=number % 2,
        )
        for number in range(6)
    ]
    return [QUERY, *queries]


class Checked(RandomStrategies):
    """Strategies at random; looks whether each ready operator is ready for exactly one of them."""

    def decide(self, view: View) -> Decision:
        decision = super().decide(view)
        own = [number for live in self._live.values() for number in live.view.ready]
        assert sorted(own) == sorted(view.ready)
        for step in decision.steps:
            (_,) = {self._owner(view, number) for number in step.nodes}
        return decision


ARRIVALS = streams(20.0, 2.0)
ANSWERS = run(Everything(), ARRIVALS, *overlapping()).answers


@given(seed=st.integers(0, 1000), share=st.sampled_from((0.02, 0.3, 1.0)))
@settings(max_examples=10, deadline=None)
def test_answers_do_not_depend_on_switches_of_strategies(seed: int, share: float) -> None:
    assert len(ANSWERS["q"]) > 10
    assert run(Checked(seed, share), ARRIVALS, *overlapping(), overhead=1e-3).answers == ANSWERS


@pytest.mark.parametrize("name", [name for name, _ in forms()])
def test_any_policy_can_be_a_strategy(name: str) -> None:
    master = MasterScheduler(Everything())
    for query in ("q", "o1", "o3", "o4"):
        master.assign(query, name, weight=0.5)
    assert run(master, ARRIVALS, *overlapping()).answers == ANSWERS


class Strategies:
    """Notes which strategies decided."""

    def __init__(self) -> None:
        self.decided: set[str] = set()

    def tell(self, event: Event) -> None:
        if isinstance(event, Decided):
            self.decided.add(event.why().policy)


def test_no_strategy_starves_while_another_is_overloaded() -> None:
    """Two queries are given three times the work that there is time for; the third needs little, and gets it."""
    arrivals = {"busy": np.arange(0.0, 4.0, 1 / 150), "calm": np.arange(0.0, 4.0, 0.25)}
    queries = [SimulatedQuery.straight(name, "busy", [Profile(0.01)]) for name in ("a", "b")]
    queries.append(SimulatedQuery.straight("c", "calm", [Profile(0.01)]))
    master = MasterScheduler(FirstComeFirstServed(rows=5))
    master.assign("a", "pcs(5)")
    master.assign("b", "segment(5)")
    world = World(arrivals, queries, master)
    strategies = Strategies()
    world.engine.observers.append(strategies)
    world.run(until=4.0)
    arrived, departed = world.departed()["c"]
    assert len(arrived) == 16
    # Both others run one step of five tuples in front of it, and one that had begun.
    assert (departed - arrived).max() <= 3 * 0.05 + 0.01 + 1e-9
    assert strategies.decided == {"fcfs", "pcs(5)", "segment(5)"}
