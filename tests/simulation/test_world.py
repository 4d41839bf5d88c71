"""Simulated worlds: exact times and prices, whatever the graph; windows and joins whose answers no schedule changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.model import NOTHING, Curve, Decision, Promises, Step, UserError, View
from freshet.policies import (
    BoxAtATime,
    Everything,
    FixedPriorityPush,
    Policy,
    RateBased,
    RatioPolicy,
    RoundRobin,
    SlopeSlack,
    TwoLevel,
    create,
)
from freshet.simulation.executor import Profile
from freshet.simulation.fast import FastWorld
from freshet.simulation.outcome import stale_seconds
from freshet.simulation.world import SimulatedQuery, World
from freshet.testing.policies import RandomSteps

BOTH = pytest.mark.parametrize("kind", [World, FastWorld])
Kind = type[World] | type[FastWorld]
Y = SimulatedQuery.tree(
    "q", [Profile(1.0), Profile(2.0), Profile(0.5)], (2, 2, None), Promises(curve=Curve.deadline(6.0))
)
"""Two inputs that meet in one box."""


def straight(*costs: float, name: str = "q") -> SimulatedQuery:
    return SimulatedQuery.straight(name, "s", [Profile(cost) for cost in costs])


# Prices


@BOTH
def test_a_superbox_calls_each_box_once(kind: Kind) -> None:
    world = kind({"q.0.in": np.zeros(2), "q.1.in": np.zeros(1)}, [Y], TwoLevel(), call=0.25, departs="box")
    world.run()
    arrivals, departures = world.departed()["q"]
    # 0.25 + 2 x 1.0, 0.25 + 2.0, then 0.25 and 0.5 for each of three.
    assert departures.tolist() == [5.25, 5.75, 6.25]
    assert arrivals.tolist() == [0.0, 0.0, 0.0]
    outcome = world.outcome()
    assert (outcome.work.units, outcome.work.calls, outcome.work.processing, outcome.work.overhead) == (1, 3, 5.5, 0.75)
    assert outcome.qos.average == pytest.approx(2 / 3)
    assert outcome.qos.late == 1
    assert outcome.response == pytest.approx(5.75)


@BOTH
def test_a_box_at_a_time_pays_for_units_too(kind: Kind) -> None:
    world = kind({"s": np.zeros(2)}, [straight(1.0, 2.0)], BoxAtATime(), overhead=0.5, call=0.25, departs="box")
    world.run()
    # Each box 0.5 + 0.25, then 1.0 or 2.0 for each of two.
    assert world.departed()["q"][1].tolist() == [5.5, 7.5]
    assert world.outcome().work.overhead == 1.5


@BOTH
def test_scheduling_takes_time_before_its_plan_runs(kind: Kind) -> None:
    policy = FixedPriorityPush()
    world = kind({"s": np.zeros(1)}, [straight(1.0)], policy, operation=0.5)
    world.run()
    # One invocation and one box to look at.
    assert policy.operations == 2
    assert world.departed()["q"][1].tolist() == [2.0]
    assert (world.work.scheduling, world.work.beyond) == (1.0, 1.0)


def queue_operations(policy: Policy) -> int:
    assert isinstance(policy, RatioPolicy)
    return policy.queue.extracts + policy.queue.inserts


@BOTH
def test_any_count_of_operations_can_be_charged(kind: Kind) -> None:
    queries = [straight(1.0, name=name) for name in ("a", "b")]
    world = kind({"s": np.zeros(1)}, queries, RateBased(), operation=0.5, counted=queue_operations)
    world.run()
    # 2 inserts before a, 1 extract before b.
    assert world.now == 2 * 1.0 + 3 * 0.5


@BOTH
@pytest.mark.parametrize(("departs", "departures"), [("tuple", [2.0, 4.0]), ("box", [3.0, 4.0]), ("unit", [4.0, 4.0])])
def test_when_tuples_leave(kind: Kind, departs: str, departures: list[float]) -> None:
    world = kind({"s": np.zeros(2)}, [straight(1.0, 1.0)], Everything(), departs=departs)  # type: ignore[arg-type]
    world.run()
    assert world.departed()["q"][1].tolist() == departures


@BOTH
def test_an_outcome_can_end_before_the_backlog(kind: Kind) -> None:
    world = kind({"s": np.array([0.0, 4.0])}, [straight(1.0)], RoundRobin())
    world.run()
    assert world.outcome().staleness == 2.0 / 5.0
    assert world.outcome(until=4.0).staleness == 1.0 / 4.0
    assert world.outcome(until=0.5).staleness == 1.0


def test_stale_seconds_is_the_union_of_intervals_in_any_order() -> None:
    arrivals, departures = np.array([0.0, 0.5, 3.0, 3.0]), np.array([1.0, 2.0, 4.0, 5.0])
    assert stale_seconds(arrivals, departures) == stale_seconds(arrivals[::-1], departures[::-1]) == 4.0
    assert stale_seconds(np.array([0.0, 1.0]), np.array([9.0, 2.0])) == 9.0
    assert stale_seconds(np.empty(0), np.empty(0)) == 0.0


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["baat", "taat", "aaat", "fixed-priority(2)", "slope-slack-push(2)", "bucketing(2)"]),
    st.lists(st.floats(0, 5), min_size=1, max_size=20),
    st.lists(st.floats(0, 5), min_size=1, max_size=20),
    st.sampled_from([World, FastWorld]),
)
def test_nothing_is_lost_and_all_work_is_done(name: str, left: list[float], right: list[float], kind: Kind) -> None:
    streams = {"q.0.in": np.sort(left), "q.1.in": np.sort(right)}
    world = kind(streams, [Y], create(name), call=0.01, operation=0.001, departs="box")
    world.run()
    came, left_at = world.departed()["q"]
    assert sorted(came.tolist()) == sorted([*left, *right])
    assert (left_at > came).all()
    work = world.work
    assert work.processing == pytest.approx(len(left) * 1.5 + len(right) * 2.5)
    assert world.now >= work.processing + work.beyond - 1e-9


@BOTH
def test_selective_boxes_drop_tuples_the_same_way_every_time(kind: Kind) -> None:
    counts = set()
    for _ in range(2):
        query = SimulatedQuery.straight("q", "s", [Profile(0.01, 0.5), Profile(0.01, 0.5)])
        world = kind({"s": np.arange(1000) / 10}, [query], SlopeSlack(), seed=3)
        world.run()
        counts.add(world.outcome().tuples_out)
    (count,) = counts
    assert 200 < count < 300


# Sizes


class Looks(Policy):
    """Runs boxes one by one and notes the bytes that wait in front of them."""

    name = "looks"

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def decide(self, view: View) -> Decision:
        number = next(iter(view.ready))
        self.seen.append((number, view.operators[number].bytes_waiting))
        return Decision.run(Step((number,)))


@BOTH
def test_tuples_have_sizes_in_front_of_and_behind_boxes(kind: Kind) -> None:
    profiles = [Profile(1.0, 0.5, size=8), Profile(1.0), Profile(1.0, size=1000), Profile(1.0)]
    query, policy = SimulatedQuery.straight("q", "s", profiles), Looks()
    world = kind({"s": np.zeros(10)}, [query], policy, sizes={"s": 40})
    world.run()
    passed = world.outcome().tuples_out
    assert policy.seen == [(0, 400), (1, 8 * passed), (2, 8 * passed), (3, 1000 * passed)]
    if isinstance(world, World):
        assert world.log.bytes("q", 0, passed) == 1000 * passed


# Joins and windows


def test_a_join_remembers_for_a_while() -> None:
    query = SimulatedQuery("q", {"join": Profile(1.0, lasts=2.0)}, {"join": ("s", "t")})
    world = World({"s": np.array([0.0, 1.0]), "t": np.array([0.5])}, [query], Everything())
    world.run()
    # At 0 one of s; then one of each, that of s first.
    assert world.departed()["q"][0].tolist() == [0.0, 1.0, 0.5]
    assert world.departed()["q"][1].tolist() == [1.0, 2.0, 3.0]
    assert world.engine.snapshot()["queries"]["q"]["state_rows"] == 3
    later = World({"s": np.array([0.0, 1.0, 9.0]), "t": np.array([0.5, 9.5])}, [query], Everything())
    later.run()
    assert later.engine.snapshot()["queries"]["q"]["state_rows"] == 2
    assert [operator.kind for operator in later.engine.board.operators] == ["join"]


def test_a_join_of_three_may_give_out_more_than_it_takes() -> None:
    operators = {"join": Profile(0.5, 2.5, lasts=9.0), "end": Profile(0.0)}
    query = SimulatedQuery("q", operators, {"join": ("s", "t", "u"), "end": ("join",)})
    world = World({name: np.arange(200.0) for name in "stu"}, [query], Everything())
    world.run()
    assert world.engine.board.operators[0].ports == 3
    assert 2.4 * 600 < world.outcome().tuples_out < 2.6 * 600
    assert world.work.processing == 0.5 * 600


def rows_of(profile: Profile, *times: float, **options: float) -> list[tuple[float, float]]:
    query = SimulatedQuery("q", {"window": profile}, {"window": ("s",)})
    world = World({"s": np.array(times)}, [query], Everything(), **options)  # type: ignore[arg-type]
    world.run()
    return list(zip(*(each.tolist() for each in world.departed()["q"]), strict=True))


def test_a_window_gives_a_row_when_time_has_passed() -> None:
    # The newest tuple of each second in which one came, when the second is over.
    assert rows_of(Profile(0.125, slide=1.0), 0.25, 0.5, 2.5) == [(0.5, 1.0), (2.5, 3.0)]
    assert rows_of(Profile(0.125, slide=1.0), 0.25, overhead=0.25) == [(0.25, 1.25)]


def test_a_sliding_window_counts_a_tuple_more_than_once() -> None:
    assert rows_of(Profile(0.0, slide=1.0, lasts=2.0), 0.25, 0.5, 2.5) == [
        (0.5, 1.0),
        (0.5, 2.0),
        (2.5, 3.0),
        (2.5, 4.0),
    ]


def test_a_window_forgets_what_it_has_told() -> None:
    query = SimulatedQuery("q", {"window": Profile(0.0, slide=1.0, lasts=2.0)}, {"window": ("s",)})
    world = World({"s": np.arange(0.0, 50.0, 0.25)}, [query], Everything())
    world.run(until=20.125)
    assert world.engine.snapshot()["queries"]["q"]["state_rows"] <= 12


PAIRS = SimulatedQuery(
    "pairs",
    {
        "common": Profile(0.02, 0.7),
        "join": Profile(0.01, 1.5, lasts=3.0),
        "counts": Profile(0.01, slide=1.0, lasts=2.0),
        "sums": Profile(0.01, slide=2.0),
    },
    {"common": ("s",), "join": ("common", "t"), "counts": ("join",), "sums": ("counts",)},
)
LATEST = SimulatedQuery(
    "latest", {"common": Profile(0.02, 0.7), "end": Profile(0.01, lasts=1.0)}, {"common": ("s",), "end": ("common",)}
)


def answers(policy: Policy, seed: int, slots: int = 1, most_rows: int = 1000) -> dict[str, list[float]]:
    rng = np.random.default_rng(seed)
    streams = {name: np.sort(rng.uniform(0, 10, 30)) for name in ("s", "t")}
    world = World(streams, [PAIRS, LATEST], policy, overhead=0.05, slots=slots, most_rows=most_rows, seed=seed)
    world.run()
    assert not any(operator.pending for operator in world.engine.board.operators)
    return {name: sorted(arrivals.tolist()) for name, (arrivals, _) in world.departed().items()}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 3), st.sampled_from([1, 3, 1000]))
def test_answers_of_windows_and_joins_depend_on_the_log_alone(seed: int, slots: int, most_rows: int) -> None:
    expected = answers(Everything(), seed)
    assert expected["pairs"]
    for policy in (RandomSteps(seed), RoundRobin(rows=2), create("baat"), create("slope-slack-push(2)")):
        assert answers(policy, seed, slots, most_rows) == expected


# What cannot be


def test_a_query_has_one_end() -> None:
    with pytest.raises(UserError, match="2 of its operators are read by no other"):
        SimulatedQuery("q", {"a": Profile(1.0), "b": Profile(1.0)}, {"a": ("s",), "b": ("s",)}).query()


@BOTH
def test_a_shared_operator_has_one_profile(kind: Kind) -> None:
    queries = [SimulatedQuery(f"q{cost}", {"a": Profile(cost)}, {"a": ("s",)}) for cost in (1.0, 2.0)]
    with pytest.raises(UserError, match="operator a has another profile"):
        kind({"s": np.zeros(1)}, queries, Everything())


def test_costs_are_not_negative() -> None:
    with pytest.raises(UserError, match="use 0 or more"):
        Profile(-1.0)


@pytest.mark.parametrize("profile", [Profile(1.0, slide=1.0), Profile(1.0, lasts=1.0), Profile(1.0, 1.5)])
def test_what_only_the_engine_can_do_is_said(profile: Profile) -> None:
    with pytest.raises(UserError, match="only the engine"):
        FastWorld({"s": np.zeros(1)}, [SimulatedQuery.straight("q", "s", [profile])], Everything())


class Refuses(Policy):
    """Never runs anything."""

    name = "refuses"

    def decide(self, view: View) -> Decision:
        return NOTHING


def test_a_policy_must_run_what_waits() -> None:
    with pytest.raises(UserError, match="declines"):
        FastWorld({"s": np.zeros(1)}, [straight(1.0)], Refuses()).run()
