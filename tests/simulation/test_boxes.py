"""Trees of boxes in simulated time: exact times, exact prices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.model import NOTHING, Curve, Decision, UserError, View
from freshet.policies import BoxAtATime, FixedPriorityPush, Policy, SlopeSlack, TwoLevel, create
from freshet.simulation.boxes import BoxTree, BoxWorld, Prices
from freshet.simulation.executor import Profile

Y = BoxTree("q", (Profile(1.0), Profile(2.0), Profile(0.5)), (2, 2, None), Curve.deadline(6.0))
"""Two inputs that meet in one box."""


def test_a_superbox_calls_each_box_once_and_a_box_at_a_time_too() -> None:
    world = BoxWorld([Y], {(0, 0): np.zeros(2), (0, 1): np.zeros(1)}, TwoLevel(), prices=Prices(call=0.25))
    world.run()
    arrivals, departures = world.times("q")
    # 0.25 + 2 x 1.0, 0.25 + 2.0, then 0.25 and 0.5 for each of three.
    assert departures.tolist() == [5.25, 5.75, 6.25]
    assert arrivals.tolist() == [0.0, 0.0, 0.0]
    outcome = world.outcome()
    assert (outcome.calls, outcome.processing, outcome.calling) == (3, 5.5, 0.75)
    assert outcome.qos.average == pytest.approx(2 / 3)
    assert outcome.qos.late == 1
    assert outcome.latency == pytest.approx(5.75)


def test_scheduling_takes_time_before_its_plan_runs() -> None:
    policy = FixedPriorityPush()
    world = BoxWorld(
        [BoxTree.straight("q", [Profile(1.0)])], {(0, 0): np.zeros(1)}, policy, prices=Prices(operation=0.5)
    )
    world.run()
    # One invocation and one box to look at.
    assert policy.operations == 2
    assert world.times("q")[1].tolist() == [2.0]
    assert world.outcome().overhead == 1.0


def test_tuples_that_come_during_a_plan_join_the_train() -> None:
    tree = BoxTree.straight("q", [Profile(1.0), Profile(1.0)])
    world = BoxWorld([tree], {(0, 0): np.array([0.0, 0.5, 5.0])}, BoxAtATime())
    world.run()
    # The first is passed on at 1; the schedule then holds both boxes, and the second tuple goes through the first box.
    assert world.times("q")[0].tolist() == [0.0, 0.5, 5.0]
    assert world.times("q")[1].tolist()[-1] == 7.0


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(
        ["baat", "taat", "aaat", "fixed-priority(2)", "slope-slack-push(2)", "bucketing(2)", "bucketing-push(1)"]
    ),
    st.lists(st.floats(0, 5), min_size=1, max_size=20),
    st.lists(st.floats(0, 5), min_size=1, max_size=20),
)
def test_nothing_is_lost_and_all_work_is_done(name: str, left: list[float], right: list[float]) -> None:
    arrivals = {(0, 0): np.sort(left), (0, 1): np.sort(right)}
    world = BoxWorld([Y], arrivals, create(name), prices=Prices(call=0.01, operation=0.001))  # type: ignore[arg-type]
    world.run()
    came, left_at = world.times("q")
    assert sorted(came.tolist()) == sorted([*left, *right])
    assert (left_at > came).all()
    outcome = world.outcome()
    assert outcome.processing == pytest.approx(len(left) * 1.5 + len(right) * 2.5)
    assert outcome.seconds >= outcome.processing + outcome.overhead - 1e-9


def test_selective_boxes_drop_tuples_the_same_way_every_time() -> None:
    tree = BoxTree.straight("q", [Profile(0.01, 0.5), Profile(0.01, 0.5)])
    counts = set()
    for _ in range(2):
        world = BoxWorld([tree], {(0, 0): np.arange(1000) / 10}, SlopeSlack(), seed=3)
        world.run()
        counts.add(len(world.times("q")[0]))
    (count,) = counts
    assert 200 < count < 300


class Refuses(Policy):
    """Never runs anything."""

    name = "refuses"
    operations = 0

    def decide(self, view: View) -> Decision:
        return NOTHING


def test_a_policy_must_run_what_waits() -> None:
    with pytest.raises(UserError, match="declines"):
        BoxWorld([Y], {(0, 0): np.zeros(1)}, Refuses()).run()
