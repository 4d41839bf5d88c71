"""Why policies decide as they do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from freshet.engine.events import Decided, Event, Submitted
from freshet.model import Curve, Promises
from freshet.policies import Reason, create, forms
from freshet.simulation.executor import Profile
from freshet.simulation.view import RecordView
from freshet.simulation.world import SimulatedQuery, World

NAMES = [name for name, _ in forms()]
FIGURES = {
    "fas-mcq": {"priority", "waiting", "selectivity", "cost_s", "weight"},
    "rb-mcq": {"priority", "waiting", "selectivity", "cost_s", "weight"},
    "slope-slack-push": {"slope", "slack_s", "latency_s", "waiting"},
    "bucketing-push": {"bucket", "slope", "slack_s", "waiting"},
    "fixed-priority-push": {"static_slack_s", "waiting"},
    "aaat-min-latency": {"turn", "output_cost_s", "cost_s", "waiting"},
    "aaat-min-memory": {"turn", "memory_rate", "cost_s", "waiting"},
    "fcfs": {"waiting", "oldest_s"},
    "rr": {"turns_away", "waiting"},
    "wrr": {"turns_away", "quanta", "waiting"},
    "pcs": {"capacity", "operators", "waiting"},
    "segment": {"release", "operators", "waiting"},
    "simplified-segment": {"release", "operators", "waiting"},
}


class Watcher:
    """Notes what ran when, and asks for reasons if it should."""

    def __init__(self, asks: bool) -> None:
        self.asks = asks
        self.ran: list[tuple[float, tuple[int, ...]]] = []
        self.reasons: list[tuple[Decided, Reason]] = []

    def tell(self, event: Event) -> None:
        if isinstance(event, Submitted):
            self.ran.append((event.now, event.unit.nodes))
        elif isinstance(event, Decided) and self.asks:
            self.reasons.append((event, event.why()))


def watched(policy: str, asks: bool) -> Watcher:
    """Queries that share work, over bursts, with curves of several deadlines; costs are learned."""
    generator = np.random.default_rng(7)
    queries = [
        SimulatedQuery.straight(
            f"q{number}",
            f"s{number % 3}",
            [Profile(0.01 * (1 + number % 3), 0.5, size=40), Profile(0.01 * (number % 4), 0.9), Profile(0.005)],
            curve=Curve.deadline(0.2 * (1 + number % 5)),
            shared=number % 2,
        )
        for number in range(12)
    ]
    streams = {f"s{number}": np.sort(generator.uniform(0.0, 4.0, 40)) for number in range(3)}
    world = World(streams, queries, create(policy), overhead=0.01, known=False)
    watcher = Watcher(asks)
    world.engine.observers.append(watcher)
    world.run()
    return watcher


@pytest.mark.parametrize("policy", [*NAMES, "bucketing-push(2, 5)", "slope-slack(2)", "aaat-min-memory(2)"])
def test_asking_why_changes_nothing_and_names_what_was_chosen(policy: str) -> None:
    asked, unasked = watched(policy, asks=True), watched(policy, asks=False)
    assert asked.ran == unasked.ran
    assert asked.reasons
    for event, reason in asked.reasons:
        ran = {number for step in event.decision.steps for number in step.nodes}
        assert {each.operator for each in reason.first} <= ran
        assert not {each.operator for each in reason.passed_over} & ran
        assert bool(reason.chosen) == bool(event.decision.actions)
        assert reason.chosen + len(reason.passed_over) <= reason.ready
        assert all(each.queries and each.figures for each in (*reason.first, *reason.passed_over))
        assert str(reason).startswith(reason.policy)
        assert reason.rule


def test_a_reason_names_the_beta() -> None:
    assert all(reason.figures["beta"] == 0.5 for _, reason in watched("fas-mcq(0.5)", asks=True).reasons)
    assert not any("beta" in reason.figures for _, reason in watched("fas-mcq", asks=True).reasons)


@pytest.mark.parametrize("policy", FIGURES)
def test_a_reason_has_the_figures_that_the_policy_goes_by(policy: str) -> None:
    reasons = [reason for _, reason in watched(policy, asks=True).reasons]
    found = {name for reason in reasons for each in reason.first for name in each.figures}
    assert found == FIGURES[policy]


def ready(view: RecordView, waiting: Sequence[int]) -> RecordView:
    for number, rows in enumerate(waiting):
        view.operators[number].pending, view.operators[number].head_arrival = rows, 0.0
        view.ready[number] = None
    return view


def test_a_ratio_policy_names_the_best_and_those_that_come_next() -> None:
    view = RecordView(seconds_per_step=0.5)
    for name, cost in (("dear", 4.0), ("cheap", 1.0), ("middle", 2.0)):
        view.add(name, [(cost, 1.0)])
    policy = create("rb-mcq")
    reason = policy.why(ready(view, (1, 1, 1)), policy.decide(view))
    assert str(reason) == (
        "rb-mcq runs 1 of 3, highest output rate: cheap (priority 1, waiting 1, selectivity 1, cost 1 s), "
        "before middle (priority 0.5, waiting 1, selectivity 1, cost 2 s), "
        "dear (priority 0.25, waiting 1, selectivity 1, cost 4 s); overhead 0.5 s"
    )


def test_a_set_tells_the_price_of_its_step() -> None:
    view = RecordView(seconds_per_step=2.0)
    for number in range(5):
        view.add(f"q{number}", [(1.0 + number / 10, 1.0)])
    policy = create("rb-mcq+set")
    reason = policy.why(ready(view, (1,) * 5), policy.decide(view))
    assert reason.figures == {"price_s": 2.0, "overhead_s": 2.0}
    assert reason.chosen == 5
    assert [each.queries for each in reason.first] == [("q0",), ("q1",), ("q2",)]
    assert "q2 (priority 0.833, waiting 1, selectivity 1, cost 1.2 s), ..." in str(reason)


def test_slope_and_slack_tell_what_can_still_be_kept() -> None:
    view = RecordView(now=3.0)
    for name, deadline in (("late", 1.0), ("tight", 4.0)):
        view.add(name, [(0.5, 1.0)], Promises(curve=Curve.deadline(deadline)))
    policy = create("slope-slack-push(1)")
    reason = policy.why(ready(view, (1, 1)), policy.decide(view))
    (chosen,), (other,) = reason.first, reason.passed_over
    assert (chosen.queries, other.queries) == (("tight",), ("late",))
    assert chosen.figures["slack_s"] == 0.5
    assert other.figures["slack_s"] == float("inf")


def test_where_nothing_runs_the_reason_says_so() -> None:
    view = RecordView()
    view.add("q", [(1.0, 1.0)])
    policy = create("everything")
    assert str(policy.why(view, policy.decide(view))) == "everything runs nothing of 0; overhead 0 s"
