"""Trains of the same operators that run side by side, and are settled in order whatever happens to them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.engine.lines import Line
from freshet.log import LogFull
from freshet.model import Commit, Unit, UnitResult
from freshet.policies import Everything, RoundRobin, create
from freshet.policies.registry import forms
from freshet.simulation.executor import Profile, SimulatedExecutor
from freshet.simulation.log import SimulatedLog
from freshet.simulation.world import SimulatedQuery, World


def backlog(rows: int, *, slots: int, most_rows: int, queries: int = 1, shared: int = 0) -> World:
    """Tuples that wait already, each of them worth 0.1 s to each query."""
    profiles = (Profile(0.05, 0.8), Profile(0.05))
    each = [SimulatedQuery.straight(f"q{number}", "s", profiles, shared=shared) for number in range(queries)]
    return World({"s": np.zeros(rows)}, each, Everything(), slots=slots, most_rows=most_rows)


def answers(world: World, name: str = "q0") -> list[int]:
    world.log.start_reader("test", name, "earliest")
    origins: list[int] = world.log.tuples(world.log.train(name, 0, world.log.end(name)))[1].tolist()
    return origins


def expected(rows: int, shared: int = 0) -> list[int]:
    one = backlog(rows, slots=1, most_rows=rows, shared=shared)
    one.run()
    return answers(one)


def test_full_trains_of_one_query_share_the_workers() -> None:
    times = {}
    for slots in (1, 2):
        world = backlog(40, slots=slots, most_rows=10)
        world.run()
        times[slots] = world.engine.clock.now()
        assert answers(world) == expected(40)
    assert times[2] <= 0.6 * times[1]


def test_a_train_that_is_not_full_waits() -> None:
    units = {}
    for slots in (1, 2):
        query = SimulatedQuery.straight("q0", "s", (Profile(0.3),))
        world = World({"s": np.arange(40) / 10}, [query], Everything(), slots=slots, most_rows=1000)
        world.run()
        units[slots] = world.engine.snapshot()["workers"]["units"]
    assert units[1] == units[2]


def test_a_policy_that_wants_short_trains_gets_no_longer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    submit = SimulatedExecutor.submit

    def spy(self: SimulatedExecutor, unit: Unit) -> None:
        seen.append(unit.rows)
        submit(self, unit)

    monkeypatch.setattr(SimulatedExecutor, "submit", spy)
    world = backlog(40, slots=2, most_rows=10)
    world.engine.set_policy(RoundRobin(rows=2))
    world.run()
    assert max(seen) == 2
    assert answers(world) == expected(40)


@pytest.mark.parametrize("policy", [text for text, _ in forms()])
def test_no_policy_is_confused_by_trains_that_it_did_not_choose(policy: str) -> None:
    world = backlog(60, slots=2, most_rows=5, queries=2)
    world.engine.set_policy(create(policy))
    world.run()
    assert answers(world) == expected(60)
    assert not any(operator.waiting or operator.running for operator in world.engine.board.operators)


def test_what_finishes_early_waits_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0
    submit, commit = SimulatedExecutor.submit, SimulatedLog.commit

    def slow_first(self: SimulatedExecutor, unit: Unit) -> None:
        nonlocal most
        self._overhead = 100.0 if unit.chains[0].trains[0].first == 0 else 0.0
        submit(self, unit)
        most = max(most, len(world.engine._running))

    def noted(self: SimulatedLog, commits: Sequence[Commit]) -> None:
        firsts.extend(move[2] for each in commits for move in each.cursors)
        commit(self, commits)

    firsts: list[int] = []
    monkeypatch.setattr(SimulatedExecutor, "submit", slow_first)
    monkeypatch.setattr(SimulatedLog, "commit", noted)
    world = backlog(100, slots=2, most_rows=10)
    world.run()
    assert firsts == list(range(0, 100, 10))
    assert most == 4  # two that run, two that wait: however slow the first one is, no more are held
    assert answers(world) == expected(100)


def test_where_one_must_run_again_so_must_all_behind_it() -> None:
    units = [Unit(str(number), ()) for number in range(3)]
    line = Line({unit.id: (unit, 0.0) for unit in units})
    line.results = {"0": UnitResult(units[0], 0, 1), "1": UnitResult(units[1], 0, 1, retry="the disk is full")}
    assert [result.unit.id for result in line.due()] == ["0"]
    line.results["2"] = UnitResult(units[2], 0, 1)
    assert [(result.unit.id, result.retry) for result in line.due()] == [
        ("0", None), ("1", "the disk is full"), ("2", "cancelled")
    ]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 60),
    most_rows=st.integers(1, 12),
    slots=st.integers(1, 4),
    queries=st.integers(1, 3),
    shared=st.integers(0, 1),
)
def test_trouble_at_any_moment_loses_and_repeats_nothing(
    seed: int, rows: int, most_rows: int, slots: int, queries: int, shared: int
) -> None:
    draw = random.Random(seed)
    finished, commit, submit = SimulatedExecutor.finished, SimulatedLog.commit, SimulatedExecutor.submit

    def flaky(self: SimulatedExecutor) -> Sequence[UnitResult]:
        return [
            replace(result, retry="no luck", chains=(), files=()) if draw.random() < 0.2 else result
            for result in finished(self)
        ]

    def full(self: SimulatedLog, commits: Sequence[Commit]) -> None:
        if draw.random() < 0.2:
            raise LogFull("no room")
        commit(self, commits)

    def uneven(self: SimulatedExecutor, unit: Unit) -> None:
        self._overhead = draw.choice([0.0, 0.5, 3.0])
        submit(self, unit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedExecutor, "finished", flaky)
        patch.setattr(SimulatedLog, "commit", full)
        patch.setattr(SimulatedExecutor, "submit", uneven)
        world = backlog(rows, slots=slots, most_rows=most_rows, queries=queries, shared=shared)
        world.run()
    board = world.engine.board
    assert board.idle_workers == slots
    assert not any(operator.pending or operator.running for operator in board.operators)
    for number in range(queries if shared else 1):
        assert answers(world, f"q{number}") == expected(rows, shared)
