"""RB-MCQ and FAS-MCQ: the orders that the paper states."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.model import Decision, OperatorRun, Promises, UserError, View
from freshet.policies import (
    FirstComeFirstServed,
    FreshnessAware,
    Policy,
    RateBased,
    RatioPolicy,
    RoundRobin,
    weights_from_subscribers,
)
from freshet.policies.aurora.rest_costs import RestCosts
from freshet.simulation.executor import Profile
from freshet.simulation.view import RecordView
from freshet.simulation.world import SimulatedQuery, World


class Table(RecordView):
    """A view given by hand: queries of one operator each, as (N, S, C, weight)."""

    def __init__(self, rows: list[tuple[int, float, float, float]]) -> None:
        super().__init__()
        for pending, selectivity, cost, weight in rows:
            (number,) = self.add("q", [(cost, selectivity)], Promises(weight=weight))
            self.operators[number].pending = pending
            if pending:
                self.ready[number] = None

    def order(self, policy: RatioPolicy) -> list[int]:
        """In which order the queries are served, each drained."""
        policy.arrived(self, self.ready)
        served = []
        while steps := policy.decide(self).steps:
            (number,) = steps[0].nodes
            served.append(number)
            del self.ready[number]
            self.operators[number].pending = 0
            policy.completed(self, [number])
        return served


TABLES = st.lists(
    st.tuples(
        st.integers(1, 50),
        st.sampled_from([0.1, 0.25, 0.3, 1.0]),
        st.sampled_from([1.0, 2.0, 4.0]),
        st.just(1.0),
    ),
    min_size=1,
    max_size=30,
)


@given(TABLES)
def test_beta_0_orders_as_rate_based_also_ties(rows: list[tuple[int, float, float, float]]) -> None:
    assert Table(rows).order(FreshnessAware(beta=0.0)) == Table(rows).order(RateBased())


@given(TABLES, st.floats(0, 1))
def test_priorities_are_the_papers(rows: list[tuple[int, float, float, float]], beta: float) -> None:
    table = Table(rows)
    policy = FreshnessAware(beta)
    for number, (pending, selectivity, cost, _) in enumerate(rows):
        exponent = pending**beta
        expected = (1 - (1 - selectivity) ** exponent) / (exponent * cost)  # Eq. 15
        assert policy.priority(table, number) == pytest.approx(expected)
        assert policy.value(table, number) / policy.cost(table, number) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rows", "first"),
    [
        ([(3, 0.5, 2.0, 1.0), (3, 0.5, 1.0, 1.0)], 1),  # FAS §4.3 case 1: the lower cost
        ([(5, 0.5, 1.0, 1.0), (4, 0.5, 1.0, 1.0)], 1),  # case 2: fewer pending tuples
        ([(3, 0.2, 1.0, 1.0), (3, 0.3, 1.0, 1.0)], 1),  # case 3: the higher staleness probability
        ([(3, 0.5, 1.0, 0.2), (3, 0.5, 1.0, 0.9)], 1),  # Eq. 12: the heavier query
    ],
)
def test_fas_mcq_behaves_as_stated(rows: list[tuple[int, float, float, float]], first: int) -> None:
    assert Table(rows).order(FreshnessAware())[0] == first


def test_weights_can_be_left_out() -> None:
    rows = [(3, 0.5, 1.0, 0.2), (3, 0.5, 1.0, 0.9)]
    assert Table(rows).order(FreshnessAware(weighted=False)) == [0, 1]


def test_the_rest_of_a_path_has_its_own_cost_and_selectivity() -> None:
    view = RecordView()
    view.add("q", [(2.0, 0.5), (3.0, 0.1)])
    terms = RateBased().terms(view, 0)
    assert (terms.selectivity, terms.cost) == (0.05, 2.0 + 0.5 * 3.0)
    assert RateBased().terms(view, 1).cost == 3.0


def test_the_value_of_shared_work_is_that_of_all_its_queries() -> None:
    view = RecordView.over({0: (1, 2), 1: (), 2: ()}, {0: (2.0, 0.5), 1: (3.0, 1.0), 2: (1.0, 1.0)})
    view.promise(0, Promises(weight=0.25))
    view.promise(1, Promises(weight=0.5))
    view.operators[0].pending = 3
    terms = FreshnessAware().terms(view, 0)
    assert (terms.selectivity, terms.cost, terms.weight) == (0.5, 2.0 + 0.5 * (3.0 + 1.0), 2 * 0.5)
    # Each of both outputs is stale with probability 1 - 0.5^3.
    assert FreshnessAware().priority(view, 0) == pytest.approx(0.5 * 2 * (1 - 0.5**3) / (3 * 4.0))
    assert RateBased().priority(view, 0) == pytest.approx(0.5 * 2 * 0.5 / 4.0)
    assert RestCosts().of(view, 0) == 4.0


def test_beta_changes_while_running() -> None:
    rows = [(30, 0.9, 1.0, 1.0), (1, 0.5, 1.0, 1.0)]  # 0 has the higher rate, 1 the shorter queue
    table, policy = Table(rows), FreshnessAware(beta=1.0)
    policy.arrived(table, table.ready)
    assert policy.decide(table).steps[0].nodes == (1,)
    policy.beta = 0.0
    assert policy.decide(table).steps[0].nodes == (0,)
    with pytest.raises(UserError, match="outside"):
        policy.beta = 1.5


def test_weights_change_while_running() -> None:
    queries = [SimulatedQuery.straight(name, "s", (Profile(1.0),)) for name in ("a", "b")]
    world = World({"s": np.array([0.0, 10.0])}, queries, FreshnessAware())
    world.run(5.0)
    world.engine.set_promises("a", Promises(weight=0.1))
    world.run()
    response = {name: q["response"]["mean_s"] for name, q in world.engine.snapshot()["queries"].items()}
    assert response == {"a": 1.5, "b": 1.5}  # first a before b, then b before a


def test_weights_from_subscribers() -> None:
    assert weights_from_subscribers({"a": 3, "b": 4}) == {"a": 0.75, "b": 1.0}
    assert weights_from_subscribers({"a": 0}) == {"a": 1.0}


class Checked(FreshnessAware):
    """FAS-MCQ that looks at every queue in every decision, to see whether it really chose the best."""

    decisions = 0

    def decide(self, view: View) -> Decision:
        decision = super().decide(view)
        if decision.steps:
            afresh = FreshnessAware(self.beta, self.rows)
            best = max(afresh.priority(view, number) for number in view.ready)
            assert afresh.priority(view, decision.steps[0].nodes[0]) == best
            self.decisions += 1
        return decision


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), slots=st.integers(1, 2), rows=st.sampled_from([None, 1]))
def test_notices_keep_the_ranking_up_to_date(seed: int, slots: int, rows: int | None) -> None:
    rng = np.random.default_rng(seed)
    queries = [
        SimulatedQuery.straight(
            f"q{index}",
            f"s{index % 3}",
            (Profile(float(rng.uniform(0.05, 0.4)), float(rng.uniform(0.1, 1))), Profile(0.05)),
        )
        for index in range(6)
    ]
    streams = {f"s{index}": np.sort(rng.uniform(0, 15, 20)) for index in range(3)}
    policy = Checked(rows=rows)
    World(streams, queries, policy, seed=seed, slots=slots, known=False).run()
    assert policy.decisions > 5


def test_every_query_is_served_although_others_keep_coming() -> None:
    table = Table([(random.Random(number).randint(1, 9), 0.5, 1.0 + number, 1.0) for number in range(200)])
    assert sorted(table.order(FreshnessAware())) == list(range(200))


def test_a_cold_first_run_does_not_keep_a_query_from_running() -> None:
    queries = [SimulatedQuery.straight(name, f"for_{name}", (Profile(0.01),)) for name in ("busy", "cold")]
    world = World({"for_busy": np.zeros(1000), "for_cold": np.zeros(1)}, queries, RateBased(rows=1), known=False)
    for operator in world.engine.board.operators:
        operator.statistics.add(OperatorRun(operator.node.number, 1, 1, 5.0 if operator.node.query == "cold" else 0.01))
    world.run(until=5.0)
    waiting = [operator.pending for operator in world.engine.board.operators]
    assert waiting[0] > 400, "there was time for all"
    assert waiting[1] == 0


@pytest.mark.parametrize("policy", [FreshnessAware(), RateBased(), RoundRobin(), FirstComeFirstServed()])
def test_a_query_that_was_held_goes_on(policy: Policy) -> None:
    queries = [SimulatedQuery.straight(name, "s", (Profile(0.1),)) for name in ("a", "b")]
    world = World({"s": np.array([0.0, 1.0, 2.0])}, queries, policy)
    held = {"a": "full"}
    world.log.held = lambda: dict(held)  # type: ignore[method-assign]
    world.run(3.0)
    waiting = [operator.pending for operator in world.engine.board.operators]
    held.clear()
    world.run(10.0)
    assert waiting == [3, 0]
    assert world.engine.snapshot()["queries"]["a"]["tuples_in"] == 3


@pytest.mark.parametrize("policy", [FreshnessAware(), RateBased(), RoundRobin(), FirstComeFirstServed()])
def test_a_cancelled_unit_runs_again_although_others_wait(policy: Policy) -> None:
    queries = [SimulatedQuery.straight(name, "s", (Profile(1.0),)) for name in ("a", "b")]
    world = World({"s": np.array([0.0])}, queries, policy)
    world.run(0.5)
    world.engine.executor.cancel("1-1@0")
    world.run(10.0)
    assert [query["tuples_out"] for query in world.engine.snapshot()["queries"].values()] == [1, 1]
