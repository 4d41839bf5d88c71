"""The worked examples of CAR ch. 4, and what all QoS-aware schedulers must keep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.engine.events import Event, Submitted
from freshet.model import Curve, Decision, Promises, UserError, View
from freshet.policies import (
    Bucketing,
    BucketingPush,
    Everything,
    FixedPriority,
    FixedPriorityPush,
    Policy,
    SlopeSlack,
    SlopeSlackFused,
    SlopeSlackPush,
    create,
)
from freshet.policies.aurora.bucket_table import BucketTable, Grid, ranges_of
from freshet.policies.aurora.schedule import SchedulePolicy
from freshet.simulation.executor import Profile
from freshet.simulation.view import RecordView
from freshet.simulation.world import SimulatedQuery, World

SCHEDULERS = ("fixed-priority", "slope-slack", "bucketing")
ALL = [f"{name}{form}" for name in SCHEDULERS for form in ("", "-push", "-fused")]


class Calls:
    """Remembers the calls of boxes."""

    def __init__(self) -> None:
        self.called: list[int] = []

    def tell(self, event: Event) -> None:
        if isinstance(event, Submitted):
            self.called += event.unit.nodes


def three_applications(policy: SchedulePolicy) -> list[str]:
    """The network of CAR §4.5: three chains of four boxes that cost 1, deadlines 6, 10 and 14, one tuple each."""
    queries = [
        SimulatedQuery.straight(
            f"application {number}", f"s{number}", [Profile(1.0)] * 4, curve=Curve.deadline(deadline)
        )
        for number, deadline in enumerate((6.0, 10.0, 14.0))
    ]
    world, calls = World({f"s{number}": np.zeros(1) for number in range(3)}, queries, policy), Calls()
    world.engine.observers.append(calls)
    world.run()
    return [f"b{number + 1}" for number in calls.called]


def order(text: str) -> list[str]:
    return text.split()


def test_fixed_priority_by_two_boxes() -> None:
    assert three_applications(FixedPriority(2)) == order("b1 b5 b2 b6 b3 b7 b4 b8 b9 b10 b11 b12")


def test_slope_slack_by_two_boxes() -> None:
    assert three_applications(SlopeSlack(2)) == order("b1 b5 b2 b6 b3 b7 b8 b9 b10 b4 b11 b12")


def test_slope_slack_by_three_boxes_follows_the_rule_not_the_print() -> None:
    assert three_applications(SlopeSlack(3)) == order("b1 b5 b9 b2 b6 b10 b7 b11 b3 b8 b12 b4")


@pytest.mark.parametrize("policy", [FixedPriorityPush(2), SlopeSlackPush(2), BucketingPush(2, 20)])
def test_push_through_meets_all_three_deadlines(policy: SchedulePolicy) -> None:
    assert three_applications(policy) == [f"b{number}" for number in range(1, 13)]


def test_late_tuples_may_wait_for_idle_time() -> None:
    called = three_applications(SlopeSlack(2, idle_only=True))
    assert called == order("b1 b5 b2 b6 b3 b7 b8 b9 b10 b11 b12 b4")


def test_table_4_1() -> None:
    view, policy = RecordView(), FixedPriority(6)
    for name, deadline in (("application 1", 4.0), ("application 2", 8.0)):
        view.add(name, [(1.0, 1.0)] * 3, Promises(curve=Curve.deadline(deadline)))
    boxes = {"b3": 0, "b2": 1, "b1": 2, "b6": 3, "b5": 4, "b4": 5}
    slacks = {box: policy.priority(view, number) for box, number in boxes.items()}
    assert slacks == {"b1": 3.0, "b2": 2.0, "b3": 1.0, "b4": 7.0, "b5": 6.0, "b6": 5.0}
    view.ready.update(dict.fromkeys(reversed(range(6))))
    names = {number: box for box, number in boxes.items()}
    assert [names[number] for number in policy.ranked(view)] == ["b3", "b2", "b1", "b6", "b5", "b4"]


@pytest.mark.parametrize(
    ("application", "latency", "slack_bucket", "slope_bucket", "traversal"),
    [(1, 1.5, 2, 2, "32"), (1, 0.5, 1, 1, "41"), (1, 3.5, 1, 4, "11"), (2, 1.5, 4, 2, "34"), (2, 2.5, 3, 2, "33")],
)
def test_table_4_3(application: int, latency: float, slack_bucket: int, slope_bucket: int, traversal: str) -> None:
    curves = {1: Curve([(0, 5), (1, 5), (3, 3), (4, 0)]), 2: Curve([(0, 5), (5, 0)])}
    grid, curve = Grid(4, 5, 1.0, 1.0), curves[application]
    assert grid.slack_bucket(curve.slack(latency)) + 1 == slack_bucket
    assert grid.slope_bucket(curve.slope(latency)) + 1 == slope_bucket
    row, column = map(int, traversal)
    assert ranges_of(curve, grid).look_up(latency)[0] == (row - 1) * grid.slacks + column - 1


CURVES = st.sampled_from(
    [
        Curve.deadline(0.5),
        Curve.deadline(2.0, 0.1),
        Curve([(0, 1), (1, 1), (3, 0.25), (4, 0)]),
        Curve([(0, 1), (5, 0)]),
        Curve([(0, 1)]),
    ]
)


@given(CURVES, st.integers(1, 9), st.integers(1, 9), st.floats(1e-6, 8.0))
def test_ranges_agree_with_slope_and_slack(curve: Curve, slopes: int, slacks: int, latency: float) -> None:
    grid = Grid.over([curve, Curve.deadline(2.0, 0.5)], slopes, slacks)
    slack = curve.slack(latency)
    expected = (
        grid.late
        if math.isinf(slack)
        else grid.bucket(grid.slope_bucket(curve.slope(latency)), grid.slack_bucket(slack))
    )
    ranges = ranges_of(curve, grid)
    bucket, end = ranges.look_up(latency)
    # On a border rounding may go either way.
    if all(abs(latency - border) > 1e-9 for border in ranges.ends):
        assert bucket == expected
    buckets, ends = BucketTable([ranges]).look_up(np.array([0]), np.array([latency]))
    assert (buckets[0], ends[0]) == (bucket, end)


def waiting(curves: Sequence[Curve], heads: Sequence[float], rows: Sequence[int], now: float) -> RecordView:
    view = RecordView(now=now)
    for number, (curve, head, count) in enumerate(zip(curves, heads, rows, strict=True)):
        (operator,) = view.add(f"q{number}", [(0.01, 1.0)], Promises(curve=curve))
        view.operators[operator].pending, view.operators[operator].head_arrival = count, head
        view.ready[operator] = None
    return view


@st.composite
def boards(draw: st.DrawFn) -> RecordView:
    count = draw(st.integers(1, 90))
    curves = draw(st.lists(CURVES, min_size=count, max_size=count))
    heads = draw(st.lists(st.floats(0, 5), min_size=count, max_size=count))
    rows = draw(st.lists(st.integers(1, 20), min_size=count, max_size=count))
    return waiting(curves, heads, rows, now=5.0)


@settings(max_examples=50, deadline=None)
@given(boards(), st.integers(1, 100))
def test_slope_slack_by_arrays_and_by_loop_agree(view: RecordView, size: int) -> None:
    policy = SlopeSlackPush(size)
    by_loop = sorted((-slope, slack) for slope, slack in (policy.p_tuple(view, number) for number in view.ready))
    chosen = [policy.p_tuple(view, number) for number in policy.ranked(view)]
    assert [-slope for slope, _ in chosen] == pytest.approx([slope for slope, _ in by_loop[:size]])
    assert [slack for _, slack in chosen] == pytest.approx([slack for _, slack in by_loop[:size]])


@settings(max_examples=50, deadline=None)
@given(boards(), st.integers(1, 30))
def test_bucketing_takes_the_best_buckets_first(view: RecordView, size: int) -> None:
    policy = BucketingPush(size, 12)
    grid = Grid.over([each.promises.curve for each in view.queries if each.promises.curve], 12, 12)
    places = {
        number: ranges_of(policy.curve(view, number), grid).look_up(policy.expected_latency(view, number))[0]
        for number in view.ready
    }
    order: list[int] = []
    while view.ready:
        for number in policy.ranked(view):
            order.append(number)
            view.operators[number].pending = 0
            del view.ready[number]
    assert sorted(order) == list(range(len(view.operators)))
    assert [places[number] for number in order] == sorted(places.values())


def test_one_bucket_is_round_robin() -> None:
    view = waiting([Curve.deadline(1.0)] * 4, [0.0, 3.0, 2.0, 1.0], [1] * 4, now=3.5)
    policy = Bucketing(1, 1)
    served = []
    for _ in range(8):
        (number,) = policy.ranked(view)
        served.append(number)
        # It is served and another tuple comes at once.
        del view.ready[number]
        view.ready[number] = None
        policy.arrived(view, [number])
    assert served == [0, 1, 2, 3, 0, 1, 2, 3]


def test_an_operator_moves_on_when_its_day_comes() -> None:
    """Two queries; the loose one is older and becomes the more urgent one as time passes, without any notice."""
    view = waiting([Curve.deadline(10.0), Curve.deadline(4.0)], [0.0, 9.0], [1, 1], now=3.0)
    policy = Bucketing(1, 20)
    view.operators[1].head_arrival = 3.0
    assert list(policy.ranked(view)) == [1]
    policy.arrived(view, [1])
    view.now, view.operators[1].head_arrival = 9.7, 9.7
    assert list(policy.ranked(view)) == [0]


def test_a_fused_step_ends_before_it_breaks_a_promise() -> None:
    curves = [Curve.deadline(1.0), Curve.deadline(5.0), Curve.deadline(9.0)]
    view = waiting(curves, [0.0] * 3, [10, 100, 100], now=0.0)
    view.seconds_per_step = 0.2
    # 0.2 + 0.1 s for the first; the second would add 1 s.
    (step,) = SlopeSlackFused(10).decide(view).steps
    assert step.nodes == (0,)
    view.promise(0, Promises(curve=Curve.deadline(2.0)))
    (step,) = SlopeSlackFused(10).decide(view).steps
    assert step.nodes == (0, 1)


def test_a_promise_that_is_lost_anyway_does_not_keep_others_out() -> None:
    view = waiting([Curve.deadline(0.1), Curve.deadline(9.0)], [0.0] * 2, [1, 1], now=0.0)
    view.seconds_per_step = 0.5
    (step,) = SlopeSlackFused(10).decide(view).steps
    assert len(step.nodes) == 2


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("fixed")])
@pytest.mark.parametrize("count", [2, 200])
def test_what_the_overhead_of_its_step_makes_late_comes_last(name: str, count: int) -> None:
    """20 ms are left and a step takes 30: only the other promise can still be kept. By loop and by array."""
    curves = [Curve.deadline(0.5), Curve.deadline(0.2)] * (count // 2)
    view = waiting(curves, [0.0] * count, [1] * count, now=0.17)
    view.seconds_per_step = 0.03
    policy = create(f"{name}({count})")
    assert isinstance(policy, SchedulePolicy)
    late = [number % 2 == 1 for number in policy.ranked(view)]
    assert late == sorted(late)


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("fixed")])
@pytest.mark.parametrize("size", [1, 200])
def test_an_operator_is_placed_alike_by_loop_and_by_array_with_overhead(name: str, size: int) -> None:
    """The order of 200 operators whose slack an overhead changes, however many are looked at at once."""
    rng = np.random.default_rng(7)
    view = waiting(
        [Curve.deadline(float(end)) for end in rng.uniform(0.02, 1.0, 200)],
        rng.uniform(0.0, 0.2, 200).tolist(),
        rng.integers(1, 5, 200).tolist(),
        now=0.2,
    )
    view.seconds_per_step = 0.03
    policy = create(f"{name}({size})")
    assert isinstance(policy, SchedulePolicy)
    slack = {
        number: policy.curve(view, number).slack(0.2 - view.operators[number].mean_arrival + 0.03
                                                 + 0.01 * view.operators[number].pending)
        for number in view.ready
    }  # fmt: skip
    chosen = policy.ranked(view)
    # A bucket is a twentieth of the range of slacks, which is one second.
    assert all(slack[a] <= slack[b] + 0.05 for a, b in pairwise(chosen))
    assert slack[chosen[0]] <= min(slack.values()) + 0.05


def test_fixed_priorities_count_a_step_for_every_box_that_is_left() -> None:
    view = RecordView(seconds_per_step=0.03)
    for promise, boxes in ((1.0, 1), (1.04, 3)):
        first, *_ = view.add(f"q{boxes}", [(0.0, 1.0)] * boxes, Promises(curve=Curve.deadline(promise)))
        view.operators[first].pending, view.operators[first].head_arrival = 1, 0.0
        view.ready[first] = None
    # Three steps take 90 ms: what is promised later has less slack.
    assert FixedPriority(2).priority(view, 0) == pytest.approx(0.97)
    assert list(FixedPriority(2).ranked(view)) == [1, 0]
    # Pushed through both take one step.
    assert list(FixedPriorityPush(2).ranked(view)) == [0, 1]


def test_the_expected_latency_has_the_overhead_of_all_steps_to_the_output() -> None:
    view = RecordView(seconds_per_step=0.5, now=1.0)
    first, _, last = view.add("q", [(1.0, 0.5), (2.0, 1.0), (4.0, 1.0)])
    for number in (first, last):
        view.operators[number].pending, view.operators[number].head_arrival = 1, 0.0
    assert SlopeSlackPush().expected_latency(view, first) == 1.0 + 0.5 + 4.0
    assert SlopeSlack().expected_latency(view, first) == 1.0 + 3 * 0.5 + 4.0 + 4.0
    assert SlopeSlack().expected_latency(view, last) == 1.0 + 0.5 + 4.0


def run_on_engine(policy: Policy, seed: int, slots: int = 1) -> tuple[dict[str, list[tuple[float, int]]], World]:
    rng = np.random.default_rng(seed)
    streams = {name: np.sort(rng.uniform(0, 10, 40)) for name in ("s", "t")}
    queries = [
        SimulatedQuery.straight(
            f"q{index}",
            ("s", "t")[index % 2],
            (*(Profile(float(rng.uniform(0.01, 0.2)), float(rng.uniform(0.2, 1.0))) for _ in range(2)), Profile(0.01)),
            curve=None if index == 3 else Curve.deadline(float(rng.uniform(0.2, 3.0)), 0.5),
        )
        for index in range(4)
    ]
    world = World(streams, queries, policy, overhead=0.05, slots=slots, seed=seed, known=seed % 2 == 0)
    world.run()
    rows = {}
    for state in world.engine.board.queries:
        world.log.start_reader("test", state.name, "earliest")
        arrivals, origins, _ = world.log.tuples(world.log.train(state.name, 0, world.log.end(state.name)))
        rows[state.name] = list(zip(arrivals.tolist(), origins.tolist(), strict=True))
    return rows, world


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), slots=st.integers(1, 3), size=st.integers(1, 5))
def test_answers_do_not_depend_on_the_scheduler(seed: int, slots: int, size: int) -> None:
    expected, _ = run_on_engine(Everything(), seed)
    for name in ALL:
        assert run_on_engine(create(f"{name}({size})"), seed, slots)[0] == expected


def test_the_engine_meters_the_curves() -> None:
    _, world = run_on_engine(SlopeSlackPush(), seed=4)
    snapshot = world.engine.snapshot()
    assert snapshot["queries"]["q3"]["qos"] is None
    each = [snapshot["queries"][f"q{number}"]["qos"] for number in range(3)]
    means = [qos["mean"] for qos in each if qos is not None and qos["mean"] is not None]
    total = snapshot["total"]["qos"]
    assert total is not None
    assert total["average"] == pytest.approx(sum(means) / 3)
    assert 0.0 < (total["per_tuple"] or 0.0) <= 1.0


def test_the_operators_of_a_schedule_are_told_apart() -> None:
    with pytest.raises(UserError, match="at least 1, not 0"):
        create("slope-slack(0)")
    with pytest.raises(UserError, match="at least 1, not 0"):
        create("bucketing(10, 0)")


def test_what_waits_further_on_counts_a_box_at_a_time() -> None:
    view = RecordView()
    first, _, last = view.add("q", [(1.0, 0.5), (2.0, 1.0), (4.0, 1.0)])
    view.operators[first].pending, view.operators[last].pending = 3, 2
    plain: View = view
    assert SlopeSlack().computation(plain, first) == 3 * (1.0 + 0.5 * (2.0 + 4.0)) + 2 * 4.0
    assert SlopeSlackPush().computation(plain, first) == 3 * (1.0 + 0.5 * (2.0 + 4.0))


def nodes_of(decision: Decision) -> list[tuple[int, ...]]:
    return [step.nodes for step in decision.steps]


def test_plans_a_box_at_a_time_and_pushed_through() -> None:
    view = RecordView()
    first, second, third = view.add("q", [(1.0, 1.0)] * 3)
    view.operators[first].pending, view.operators[first].head_arrival = 1, 0.0
    view.ready[first] = None
    assert nodes_of(create("slope-slack").decide(view)) == [(first,)]
    assert nodes_of(create("slope-slack-push").decide(view)) == [(first, second, third)]
