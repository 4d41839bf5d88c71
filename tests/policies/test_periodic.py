"""Schedulers of periodic queries, by views of plain records."""

from __future__ import annotations

from itertools import pairwise

import pytest

from freshet.model import Abandon, Decision, Promises, RunInstances, UserError
from freshet.policies import Everything
from freshet.policies.periodic import PeriodicFirst, check_periodic, create_periodic, periodic_names
from freshet.simulation.view import InstanceRecord, RecordView


def view(*queries: tuple[float, float, float], now: float = 0.0, rows: int = 10) -> RecordView:
    """Queries given as (period, deadline, seconds for their rows), each with an instance that was released at 0."""
    made = RecordView(now=now)
    for number, (period, deadline, seconds) in enumerate(queries):
        promises = Promises(period=period, deadline=deadline)
        (node,) = made.add(f"q{number}", [(seconds / rows, 1.0)], promises)
        made.instances.append(InstanceRecord((f"q{number}", 0), number, 0.0, deadline, rows, node))
    return made


def chosen(decision: Decision) -> list[list[str]]:
    return [[run.key[0] for run in each.runs] for each in decision.actions if isinstance(each, RunInstances)]


def first(name: str, seen: RecordView) -> list[list[str]]:
    return chosen(PeriodicFirst(create_periodic(name), Everything()).decide(seen))


def test_each_scheduler_has_its_own_first() -> None:
    seen = view((4.0, 1.0, 0.1), (1.0, 3.0, 0.1), (2.0, 2.5, 2.4))
    # By the deadline, and by the time to it, the first; by the period the second; by laxity the last.
    seen.instances[0].release = 0.5
    seen.instances[0].deadline = 2.6
    seen.instances[2].deadline = 2.5
    assert first("edf", seen) == [["q2"]]
    assert first("rm", seen) == [["q1"]]
    assert first("dm", seen) == [["q0"]]
    seen.instances[2].deadline = 3.0
    assert first("llf", seen) == [["q2"]]
    assert first("edf", seen) == [["q0"]]


def test_the_reason_names_what_runs_and_what_has_to_wait() -> None:
    seen = view((4.0, 3.0, 0.1), (1.0, 1.0, 0.1), now=0.5)
    policy = PeriodicFirst(create_periodic("edf"), Everything())
    told = str(policy.why(seen, policy.decide(seen)))
    assert told.startswith("edf runs 1 of 2, the earliest deadline first: q1 (due 0.5 s), before q0 (due 2.5 s); ")


def test_ties_are_broken_by_a_hash_or_by_the_shortest() -> None:
    seen = view((1.0, 1.0, 0.5), (1.0, 1.0, 0.1), (1.0, 1.0, 0.3))
    assert first("edf(shortest)", seen) == [["q1"]]
    order = create_periodic("edf").order(seen)
    assert [each.key for each in create_periodic("edf").order(seen)] == [each.key for each in order]
    firsts = set()
    for release in range(20):
        for each in seen.instances:
            each.key = (each.key[0], release)
        firsts |= {each.key[0] for each in create_periodic("edf").order(seen)[:1]}
    assert firsts == {"q0", "q1", "q2"}, "no query is always the last"


def test_queries_whose_names_are_alike_do_not_run_together() -> None:
    """Errors of long instances fall on those behind them, so kinds of queries must be mixed."""
    seen = view(*[(1.0, 1.0, 0.1)] * 16)
    for number, each in enumerate(seen.instances):
        each.key = (f"{'long' if number < 8 else 'tiny'}_s{number % 8}", 0)
    together = 0
    for release in range(100):
        for each in seen.instances:
            each.key = (each.key[0], 2_000_000 * release)
        kinds = [each.key[0][:4] for each in create_periodic("edf").order(seen)]
        together += sum(one == other for one, other in pairwise(kinds))
    # By chance 7 of the 15 behind one are like it.
    assert 650 < together < 750


def test_fused_instances_stay_in_time() -> None:
    seen = view((1.0, 1.0, 0.4), (1.0, 1.0, 0.4), (1.0, 1.0, 0.4), (1.0, 1.0, 0.05))
    seen.seconds_per_step = 0.1
    (together,) = first("edf-fused", seen)
    assert len(together) in (2, 3)
    seconds = {f"q{number}": cost for number, cost in enumerate((0.4, 0.4, 0.4, 0.05))}
    assert 0.1 + sum(seconds[name] for name in together) <= 1.0
    late = view((1.0, 1.0, 1.5), (1.0, 2.0, 0.1))
    assert len(first("edf-fused", late)[0]) == 2, "one that is late anyway sets no bound"


def test_late_instances_are_abandoned_and_the_next_one_runs() -> None:
    seen = view((1.0, 1.0, 0.1), now=1.5)
    seen.queries[0].promises = Promises(period=1.0, deadline=1.0, late="abandon")
    seen.instances.append(InstanceRecord(("q0", 1_000_000), 0, 1.0, 2.0, 10, 0, may_run=False))
    decision = PeriodicFirst(create_periodic("edf"), Everything()).decide(seen)
    assert decision.abandoned == (Abandon(("q0", 0)),)
    assert [run.key for each in decision.actions if isinstance(each, RunInstances) for run in each.runs] == [
        ("q0", 1_000_000)
    ]


def test_continuous_queries_get_their_reserve_and_no_more() -> None:
    seen = view((1.0, 1.0, 0.1))
    (node,) = seen.add("c", [(0.01, 1.0)])
    policy = PeriodicFirst(create_periodic("edf"), Everything(), reserve=0.2)
    spent = {"periodic": 0.0, "continuous": 0.0}
    for _ in range(500):
        seen.operators[node].pending, seen.ready[node] = 10, None
        decision = policy.decide(seen)
        seconds = 0.1
        seen.now += seconds
        if chosen(decision):
            spent["periodic"] += seconds
        else:
            spent["continuous"] += seconds
            policy.completed(seen, [node])
    share = spent["continuous"] / sum(spent.values())
    assert share == pytest.approx(0.2, abs=0.02)


def test_without_a_reserve_continuous_queries_get_the_slack_alone() -> None:
    seen = view((1.0, 1.0, 0.1))
    (node,) = seen.add("c", [(0.01, 1.0)])
    seen.operators[node].pending, seen.ready[node] = 10, None
    policy = PeriodicFirst(create_periodic("edf"), Everything(), reserve=0.0)
    assert chosen(policy.decide(seen)) == [["q0"]]
    seen.instances.clear()
    assert policy.decide(seen).steps


def test_names_are_checked() -> None:
    assert periodic_names() == ("edf", "edf-fused", "rm", "dm", "llf")
    with pytest.raises(UserError, match="ties of edf are broken by 'hash' or 'shortest', not 'name'"):
        create_periodic("edf(name)")
    with pytest.raises(UserError, match="reserve must be at least 0 and below 1"):
        check_periodic("edf", 1.0)
