"""Verdicts: what is feasible, what is overloaded in QoS though not in capacity, and what would help."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.model import Curve, Promises
from freshet.model.promises.balance import BalanceBound
from freshet.quality.feasibility import Latencies, QueryDemand, Situation, apart, knee, together, verdicts
from freshet.quality.feasibility.curves import GOOD, qos_of


def load(name: str, rate: float, work: float, limit: float | None) -> QueryDemand:
    return QueryDemand(name, rate, work, Promises(curve=None if limit is None else Curve.deadline(limit, limit / 10)))


def test_a_promise_shorter_than_a_step_is_overload_in_qos_and_not_in_capacity() -> None:
    """CAR §4.6: two boxes of one time unit each, a deadline of two: half of the capacity, and yet too late."""
    [verdict] = verdicts(Situation((load("q", 0.5, 1.0, 1.5),), overhead=0.0))
    assert verdict.feasible == "no"
    assert "although the queries take only 50 %" in verdict.reason
    assert verdict.advice.startswith("let its worth last for")


def test_more_than_the_workers_can_do_is_overload_in_capacity() -> None:
    [verdict] = verdicts(Situation((load("q", 10.0, 0.2, 100.0),), overhead=0.0))
    assert verdict.feasible == "no"
    assert verdict.reason == "capacity: the queries take 200 % of the workers' time"
    assert verdict.room == pytest.approx(0.5, rel=0.05)
    assert [each.feasible for each in verdicts(Situation((load("q", 10.0, 0.2, 100.0),), 0.0, workers=4))] == ["yes"]


def test_loosening_as_advised_makes_it_feasible() -> None:
    situation = Situation((load("tight", 20.0, 0.01, 0.02), load("loose", 20.0, 0.01, 5.0)), overhead=0.005)
    [tight, loose] = verdicts(situation)
    assert (tight.feasible, loose.feasible) == ("no", "yes")
    milliseconds = float(tight.advice.split("for ")[1].split(" ms")[0])
    mended = Situation((load("tight", 20.0, 0.01, milliseconds / 1e3), situation.queries[1]), overhead=0.005)
    assert verdicts(mended)[0].feasible != "no"


def test_the_advice_stands_what_was_measured_too() -> None:
    """A promise that rates and costs already break is not mended by a time that was exceeded tenfold."""
    slow = QueryDemand("q", 5.0, 0.1, Promises(curve=Curve.deadline(0.02)), measured=1.4)
    quick = QueryDemand("q", 5.0, 0.1, Promises(curve=Curve.deadline(0.02)), measured=0.001)
    assert verdicts(Situation((slow,), overhead=0.005))[0].advice == "let its worth last for 1.4 s"
    [verdict] = verdicts(Situation((quick,), overhead=0.005))
    assert "1 ms" not in verdict.advice
    assert verdict.advice.startswith("let its worth last for")


@pytest.mark.parametrize(("rate", "overhead"), [(1000.0, 0.0), (15.0, 0.1)])
def test_over_capacity_no_time_is_advised(rate: float, overhead: float) -> None:
    tight, loose = load("tight", rate, 0.1, 0.5), load("loose", rate, 0.1, 60.0)
    for verdict in verdicts(Situation((tight, loose), overhead)):
        assert (verdict.feasible, verdict.expected) == ("no", "QoS 0 %, more comes in than can be done")
        assert "let its worth last" not in verdict.advice
        assert "workers" in verdict.advice


def test_a_load_is_never_said_to_be_nothing() -> None:
    [verdict] = verdicts(Situation((load("q", 0.01, 0.1, 0.05),), overhead=0.0))
    assert "take only < 1 % of the workers' time" in verdict.reason


@pytest.mark.parametrize(
    ("seconds", "rate", "feasible"),
    [(1.0, 10.0, "yes"), (0.0164, 10.0, "barely"), (0.01, 10.0, "no"), (9.0, 200.0, "no")],
)
def test_a_bound_on_all_outputs_is_judged(seconds: float, rate: float, feasible: str) -> None:
    query = QueryDemand("q", rate, 0.01, Promises(), out=rate)
    [verdict] = verdicts(Situation((query,), 0.005, bound=BalanceBound("response", seconds)))
    assert (verdict.query, verdict.feasible) == ("all queries", feasible)
    assert ("capacity" in verdict.reason) == (rate == 200.0)
    [unknown] = verdicts(Situation((query,), 0.005, bound=BalanceBound("freshness", 0.9)))
    assert unknown.feasible == "unknown"


def test_it_names_the_query_whose_move_helps() -> None:
    queries = (load("alerts", 5.0, 0.002, 0.05), load("small", 5.0, 0.001, 10.0), load("report", 2.0, 0.3, 10.0))
    [alerts, *_] = verdicts(Situation(queries, overhead=0.001))
    assert alerts.feasible == "no"
    assert "move report to another application" in alerts.advice
    assert verdicts(Situation(queries, overhead=0.001).without("report"))[0].feasible == "yes"


def test_queries_without_curves_get_no_verdict_but_their_load_counts() -> None:
    alone = Situation((load("q", 10.0, 0.05, 0.3),), overhead=0.0)
    beside = Situation((load("q", 10.0, 0.05, 0.3), load("batch", 1.0, 0.45, None)), overhead=0.0)
    assert [each.query for each in verdicts(beside)] == ["q"]
    assert qos_of(beside)["q"] < qos_of(alone)["q"]


def test_a_query_without_tuples_is_unknown() -> None:
    [_, verdict] = verdicts(Situation((load("a", 1.0, 0.1, 9.0), load("b", 0.0, 0.0, 1.0)), overhead=0.0))
    assert (verdict.feasible, verdict.reason) == ("unknown", "nothing has come in for it yet")


DRAWN = st.lists(
    st.tuples(st.floats(0.01, 1e4), st.floats(1e-6, 1.0), st.sampled_from([None, 0.01, 0.1, 1.0, 60.0])),
    min_size=1,
    max_size=8,
)


def at_load(drawn: list[tuple[float, float, float | None]], overhead: float, share: float) -> Situation:
    whole = Situation(tuple(load(f"q{at}", *each) for at, each in enumerate(drawn)), overhead)
    return whole.scaled(share / whole.load)


@settings(max_examples=30, deadline=None)
@given(DRAWN, st.floats(0.0, 0.1), st.floats(0.05, 0.9), st.floats(1.05, 3.0))
def test_more_load_never_gives_better_answers(
    drawn: list[tuple[float, float, float | None]], overhead: float, share: float, more: float
) -> None:
    """Steps of all queries: always. Steps of one: as long as trains of single tuples would not overload the workers;
    beyond that trains grow with the load, which takes overhead from better classes and gives time to the last one."""
    calm = at_load(drawn, overhead, share)
    busy = calm.scaled(min(more, 0.97 / share))
    ways = [together]
    if sum(each.rate * (overhead + each.work) for each in busy.queries) <= 1.0:
        ways.append(apart)
    for way in ways:
        before, after = way(calm), way(busy)
        for query in calm.queries:
            assert math.isfinite(before[query.name].wait)
            assert before[query.name].quantile(0.95) <= after[query.name].quantile(0.95) * 1.001


@settings(max_examples=30, deadline=None)
@given(DRAWN, st.sampled_from([0.0, 1e-4, 1e-3, 0.01, 0.1]), st.floats(0.05, 0.9))
def test_a_hair_more_load_changes_waits_by_a_hair(
    drawn: list[tuple[float, float, float | None]], overhead: float, share: float
) -> None:
    """Waits are those of a fixed point, also where overhead takes nearly all of the time and iteration would swing."""
    situation = at_load(drawn, overhead, share)
    for way in (apart, together):
        before, after = way(situation), way(situation.scaled(1.00001))
        for query in situation.queries:
            one, other = before[query.name].quantile(0.95), after[query.name].quantile(0.95)
            assert other == pytest.approx(one, rel=0.05)


def test_the_knee_is_where_the_qos_falls_first() -> None:
    """Two alarms starve a daily query by overhead alone; with more load, trains grow, and it would be served again."""
    queries = (load("one", 7570.0, 7.3e-6, 0.1), load("two", 1388.0, 2.85e-4, 0.1), load("daily", 7382.0, 7.4e-5, 4.0))
    situation = Situation(queries, overhead=0.01)
    found = knee(situation)
    lower = [found * step / 20 for step in range(1, 20)]
    assert all(average(situation.scaled(factor)) >= GOOD for factor in lower)
    assert average(situation.scaled(found * 1.03)) < GOOD


def average(situation: Situation) -> float:
    found = qos_of(situation)
    return math.fsum(found.values()) / len(found)


def test_endless_waits_are_worth_what_the_curve_ends_with() -> None:
    late = Latencies(step=1.0, busy=1.0, wait=math.inf)
    assert late.utility(Curve([(0, 1), (1, 0.25)])) == 0.25
    assert math.isinf(late.quantile(0.95))
