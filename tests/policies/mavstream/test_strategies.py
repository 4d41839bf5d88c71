"""What the strategies run next, and what that is worth."""

from __future__ import annotations

import pytest
from tests.policies.mavstream.workload import run, streams

from freshet.model import Step, View
from freshet.policies import Policy, create
from freshet.policies.mavstream.pcs import PathCapacity
from freshet.policies.mavstream.segment import SegmentScheduling
from freshet.policies.mavstream.simplified_segment import SimplifiedSegment
from freshet.policies.mavstream.wrr import WeightedRoundRobin
from freshet.simulation.view import RecordView


def waits(view: RecordView, *numbers: int, rows: int = 100) -> RecordView:
    for number in numbers:
        view.operators[number].pending, view.operators[number].head_arrival = rows, 0.0
        view.ready[number] = None
    return view


def empties(policy: Policy, view: RecordView, step: Step) -> None:
    """A step ran, and nothing is left in front of its first operator."""
    first = step.nodes[0]
    view.operators[first].pending = 0
    view.ready.pop(first, None)
    policy.completed(view, step.nodes)


def served(policy: Policy, view: View) -> tuple[int, ...]:
    (step,) = policy.decide(view).steps
    return step.nodes


def two_paths() -> RecordView:
    """A path of little capacity, operators 0 and 1, and one of much, operators 2 and 3."""
    view = RecordView()
    view.add("slow", [(5.0, 1.0), (1.0, 1.0)])
    view.add("fast", [(1.0, 0.5), (1.0, 1.0)])
    return view


def test_pcs_runs_the_path_of_the_greatest_capacity_until_its_queue_is_empty() -> None:
    view, policy = waits(two_paths(), 0, 2), PathCapacity(rows=10)
    for _ in range(3):
        assert policy.decide(view).steps == (Step((2, 3), 10),)
        policy.completed(view, (2, 3))
    empties(policy, view, Step((2, 3)))
    assert served(policy, view) == (0, 1)


def test_pcs_turns_to_a_better_path_as_soon_as_it_gets_tuples() -> None:
    view, policy = waits(two_paths(), 0), PathCapacity()
    assert served(policy, view) == (0, 1)
    policy.arrived(waits(view, 2), (2,))
    assert served(policy, view) == (2, 3)


def test_among_equal_paths_the_one_that_runs_goes_on() -> None:
    view, policy = RecordView(), PathCapacity(rows=1)
    for name in "abc":
        view.add(name, [(1.0, 1.0)])
    policy.arrived(waits(view, 1), (1,))
    assert served(policy, view) == (1,)
    policy.arrived(waits(view, 0, 2), (0, 2))
    policy.completed(view, (1,))
    assert served(policy, view) == (1,)


def test_a_path_that_branches_off_shared_work_begins_at_its_own_queue() -> None:
    view = RecordView.over({0: (1, 2), 1: (), 2: ()}, {1: (9.0, 1.0)})
    policy = PathCapacity()
    policy.arrived(waits(view, 0), (0,))
    assert served(policy, view) == (0, 2)
    empties(policy, view, Step((0, 2)))
    policy.arrived(waits(view, 1), (1,))
    assert served(policy, view) == (1,)


def test_scores_follow_measured_costs() -> None:
    view, policy = waits(two_paths(), 0, 2), PathCapacity()
    assert served(policy, view) == (2, 3)
    view.operators[2].cost = 50.0
    policy.completed(view, (2, 3))
    assert served(policy, view) == (0, 1)


def three_steps() -> RecordView:
    view = RecordView()
    view.add("q", [(1.0, 0.2), (1.0, 0.5), (9.0, 0.9), (1.0, 1.0)])
    return view


@pytest.mark.parametrize(
    ("policy", "expected"), [(SegmentScheduling(), [(0,), (1,), (2, 3)]), (SimplifiedSegment(), [(0,), (1, 2, 3)])]
)
def test_segments_run_by_what_they_release(policy: Policy, expected: list[tuple[int, ...]]) -> None:
    view = waits(three_steps(), 0)
    found = []
    while view.ready:
        found.append(served(policy, view))
        empties(policy, view, Step(found[-1]))
        behind = found[-1][-1] + 1
        if behind < 4:
            policy.arrived(waits(view, behind), (behind,))
    assert found == expected


def test_segment_leaves_what_releases_less_for_later() -> None:
    view, policy = waits(three_steps(), 2), SegmentScheduling()
    assert served(policy, view) == (2, 3)
    policy.arrived(waits(view, 0), (0,))
    assert served(policy, view) == (0,)


def test_segment_learns_sizes_where_tuples_wait() -> None:
    view, policy = RecordView(), SegmentScheduling()
    view.add("wide", [(1.0, 1.0)])
    view.add("narrow", [(0.5, 1.0)])
    policy.arrived(waits(view, 0, 1), (0, 1))
    assert served(policy, view) == (1,)
    view.operators[0].bytes_waiting, view.operators[1].bytes_waiting = 100 * 400, 100 * 20
    policy.changed(view, 0)
    assert served(policy, view) == (0,)
    assert policy.seen == {0: 400.0, 1: 20.0}


def test_weighted_round_robin_gives_leaves_and_joins_more() -> None:
    view = RecordView.over({0: (2,), 1: (2,), 2: (3,), 3: ()}, dict.fromkeys(range(4), (0.001, 1.0)))
    view.operators[2].kind = "join"
    policy = WeightedRoundRobin(0.01, leaf=3.0, join=5.0)
    policy.arrived(waits(view, 0, 1, 2, 3), (0, 1, 2, 3))
    steps = [policy.decide(view).steps[0] for _ in range(5)]
    assert [(step.nodes[0], step.rows) for step in steps] == [(0, 30), (1, 30), (2, 50), (3, 10), (0, 30)]


NAMES = ("wrr(0.01)", "pcs(5)", "segment(5)", "simplified-segment(5)")


def test_pcs_answers_soonest_and_segment_needs_least_memory() -> None:
    """MAV §3.1 and Table 1, in simulated time: two bursts, in which more comes than can be processed."""
    arrivals = streams(50.0, 6.0)
    runs = {name: run(create(name), arrivals) for name in NAMES}
    assert min(runs, key=lambda name: runs[name].latency) == "pcs(5)"
    assert min(runs, key=lambda name: runs[name].memory) == "segment(5)"
    assert runs["simplified-segment(5)"].latency < runs["segment(5)"].latency
    answers = runs["pcs(5)"].answers
    assert len(answers["q"]) > 100
    assert all(each.answers == answers for each in runs.values()), "every strategy gives all answers"
