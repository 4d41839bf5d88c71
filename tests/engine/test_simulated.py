"""The engine in simulated time: exact values, and answers that do not depend on the schedule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.model import Decision, UserError, View
from freshet.policies import Everything, FirstComeFirstServed, Policy, RoundRobin
from freshet.simulation.executor import Profile
from freshet.simulation.world import SimulatedQuery, World
from freshet.testing import OneBox, RandomSteps


def queries(count: int, seed: int, streams: Sequence[str], shared: int = 0) -> list[SimulatedQuery]:
    rng = np.random.default_rng(seed)

    def drawn() -> list[Profile]:
        return [Profile(float(rng.uniform(0.01, 0.2)), float(rng.uniform(0.2, 1.0))) for _ in range(2)]

    common = {stream: drawn() for stream in streams}
    found = []
    for index in range(count):
        stream = streams[index % len(streams)]
        profiles = (*common[stream][:shared], *drawn()[shared:], Profile(0.01))
        found.append(SimulatedQuery.straight(f"q{index}", stream, profiles, shared=shared))
    return found


def outputs(world: World) -> dict[str, list[tuple[float, int]]]:
    """Arrival and origin of every output tuple, in the order of the output."""
    rows = {}
    for state in world.engine.board.queries:
        world.log.start_reader("test", state.name, "earliest")
        arrivals, origins, _ = world.log.tuples(world.log.train(state.name, 0, world.log.end(state.name)))
        rows[state.name] = list(zip(arrivals.tolist(), origins.tolist(), strict=True))
    return rows


def run(
    policy: Policy, seed: int, *, slots: int = 1, most_rows: int = 1000, overhead: float = 0.05, shared: int = 0
) -> World:
    rng = np.random.default_rng(seed)
    streams = {name: np.sort(rng.uniform(0, 10, 40)) for name in ("s", "t")}
    each = queries(4, seed, ["s", "t"], shared)
    world = World(streams, each, policy, overhead=overhead, slots=slots, most_rows=most_rows, seed=seed)
    world.run()
    return world


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    slots=st.integers(1, 3),
    most_rows=st.sampled_from([1, 2, 7, 1000]),
    shared=st.integers(0, 2),
)
def test_answers_depend_on_the_log_alone(seed: int, slots: int, most_rows: int, shared: int) -> None:
    expected = outputs(run(Everything(), seed, shared=shared))
    for policy in (RandomSteps(seed), RoundRobin(), FirstComeFirstServed(), RoundRobin(rows=2)):
        world = run(policy, seed, slots=slots, most_rows=most_rows, shared=shared)
        assert outputs(world) == expected
        assert not any(operator.pending or operator.running for operator in world.engine.board.operators)


def test_runs_repeat_exactly() -> None:
    first, second = run(RoundRobin(), 3), run(RoundRobin(), 3)
    assert first.engine.snapshot() == second.engine.snapshot()


def test_a_single_query_worked_by_hand() -> None:
    # Arrivals 0, 1, 1.2; cost 1 each, overhead 0.5, trains drain the queue:
    # train 1 = {0}: departs 1.5; train 2 = {1, 1.2}: starts 1.5, departs 3.0 and 4.0.
    query = SimulatedQuery.straight("q", "s", (Profile(1.0),))
    world = World({"s": np.array([0.0, 1.0, 1.2])}, [query], FirstComeFirstServed(), overhead=0.5)
    world.run()
    meters = world.engine.snapshot()["queries"]["q"]
    assert world.engine.clock.now() == 4.0
    assert meters["response"]["mean_s"] == pytest.approx((1.5 + 2.0 + 2.8) / 3)
    assert meters["freshness"] == 0.0  # [0, 1.5] and [1, 4] leave no fresh moment
    assert meters["tuples_in"] == meters["tuples_out"] == 3


def test_freshness_counts_matching_tuples_only() -> None:
    # Nothing matches: the output is fresh however long tuples wait (FAS §3.1).
    query = SimulatedQuery.straight("q", "s", (Profile(1.0, 0.0), Profile(0.0)))
    world = World({"s": np.array([0.0, 0.1, 0.2])}, [query], RoundRobin())
    world.run()
    assert world.engine.snapshot()["queries"]["q"]["freshness"] == 1.0


def test_a_stuck_query_grows_stale() -> None:
    fast, stuck = (
        SimulatedQuery.straight("fast", "s", (Profile(0.001),)),
        SimulatedQuery.straight("stuck", "s", (Profile(0.001),)),
    )
    world = World({"s": np.array([0.0, 5.0, 10.0])}, [fast, stuck], RoundRobin())
    world.engine.quarantine("stuck", "for the test")
    freshness = []
    for until in (4.0, 8.0):
        world.run(until)
        freshness.append(world.engine.snapshot()["queries"]["stuck"]["freshness"])
    assert freshness == [0.0, 0.0]
    assert (world.engine.snapshot()["queries"]["fast"]["freshness"] or 0.0) > 0.99
    assert world.engine.snapshot()["queries"]["stuck"]["oldest_waiting_s"] == 8.0


def test_a_cancelled_unit_runs_again() -> None:
    world = World({"s": np.array([0.0])}, [SimulatedQuery.straight("q", "s", (Profile(1.0),))], RoundRobin())
    world.run(0.5)
    world.engine.executor.cancel("1-1@0")
    world.run()
    assert world.engine.clock.now() == 1.5
    assert world.engine.snapshot()["queries"]["q"]["tuples_out"] == 1


def test_queries_come_and_go() -> None:
    world = World({"s": np.arange(10.0)}, [SimulatedQuery.straight("q", "s", (Profile(0.1),))], RoundRobin())
    world.run(4.5)
    late = SimulatedQuery.straight("r", "s", (Profile(0.1),))
    world.add(late)
    world.engine.drop_query("q")
    world.run()
    snapshot = world.engine.snapshot()["queries"]
    assert list(snapshot) == ["r"]
    assert snapshot["r"]["tuples_in"] == 10
    with pytest.raises(UserError, match="there is no query 'q'"):
        world.engine.drop_query("q")


def test_policies_can_be_exchanged_while_queues_inside_hold_tuples() -> None:
    expected = outputs(run(Everything(), 11))
    rng = np.random.default_rng(11)
    streams = {name: np.sort(rng.uniform(0, 10, 40)) for name in ("s", "t")}
    world = World(streams, queries(4, 11, ["s", "t"]), OneBox(), overhead=0.05, seed=11)
    world.run(5.0)
    assert any(op.pending for op in world.engine.board.operators if op.inputs)
    world.engine.set_policy(Everything())
    world.run()
    assert outputs(world) == expected


def test_a_refused_query_leaves_nothing_behind() -> None:
    world = World({"s": np.arange(3.0)}, [SimulatedQuery.straight("q", "s", (Profile(0.1),))], RoundRobin())
    unknown = SimulatedQuery.straight("bad", "s", (Profile(0.1),))
    with pytest.raises(KeyError):  # the executor knows no such operator
        world.engine.add_query(unknown.query(), {})
    good = SimulatedQuery.straight("good", "s", (Profile(0.1),))
    world.add(good)
    world.run()
    assert {name: query["tuples_out"] for name, query in world.engine.snapshot()["queries"].items()} == {
        "q": 3,
        "good": 3,
    }


def test_a_policy_that_wants_to_wait_is_asked_when_it_said() -> None:
    asked: list[float] = []

    class Patient(Everything):
        def decide(self, view: View) -> Decision:
            asked.append(view.now)
            return super().decide(view) if view.now >= 3.0 else Decision(again=3.0)

    world = World({"s": np.array([1.0, 2.0])}, [SimulatedQuery.straight("q", "s", (Profile(0.1),))], Patient())
    world.run()
    assert asked == [1.0, 2.0, 3.0]
    assert world.engine.snapshot()["workers"]["units"] == 1
