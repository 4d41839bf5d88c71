"""Units that come back undone, queries that raise, outputs that take nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from tests.engine.kit import SCHEMA, Application

from freshet.engine import Undrained
from freshet.engine.engine import DRAIN_PATIENCE
from freshet.log import LogFull
from freshet.model import Commit, Unit, UnitResult
from freshet.policies import Everything, RoundRobin
from freshet.simulation.executor import Profile, SimulatedExecutor
from freshet.simulation.log import SimulatedLog
from freshet.simulation.world import SimulatedQuery, World
from freshet.sql import build_query


def world(*names: str, tuples: int = 5) -> World:
    queries = [SimulatedQuery.straight(name, "s", (Profile(0.1),)) for name in names]
    return World({"s": np.arange(float(tuples))}, queries, Everything())


def answered(one: World, name: str) -> int:
    count: int = one.engine.snapshot()["queries"][name]["tuples_out"]
    return count


def test_a_unit_that_cannot_run_is_tried_again_ever_more_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    one = world("q", tuples=1)
    tries: list[float] = []
    finished = SimulatedExecutor.finished

    def flaky(self: SimulatedExecutor) -> Sequence[UnitResult]:
        results = finished(self)
        if results:
            tries.append(one.engine.clock.now())
        if len(tries) <= 3:
            return [replace(result, retry="the disk is full", chains=(), files=()) for result in results]
        return results

    monkeypatch.setattr(SimulatedExecutor, "finished", flaky)
    one.run(0.5)
    assert one.engine.snapshot()["trouble"] == "the disk is full"
    one.run()
    assert one.engine.snapshot()["trouble"] is None
    assert answered(one, "q") == 1
    pauses = np.diff(tries[:4]) - 0.1  # a try takes 0.1 s
    assert pauses == pytest.approx([0.1, 0.2, 0.4])


def test_a_commit_that_finds_no_room_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one = world("q")
    commit = SimulatedLog.commit
    refused: list[Sequence[Commit]] = []

    def full(self: SimulatedLog, commits: Sequence[Commit]) -> None:
        if len(refused) < 2:
            refused.append(commits)
            raise LogFull("no room")
        commit(self, commits)

    monkeypatch.setattr(SimulatedLog, "commit", full)
    one.run()
    assert len(refused) == 2
    assert answered(one, "q") == one.log.end("q") == 5


def test_a_query_that_raises_is_quarantined_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    one = world("good", "bad")
    finished = SimulatedExecutor.finished

    def raising(self: SimulatedExecutor) -> Sequence[UnitResult]:
        return [
            replace(result, chains=tuple(
                replace(done, failure="it raised") if done.chain.writes == ("bad",) else done
                for done in result.chains
            ))
            for result in finished(self)
        ]  # fmt: skip

    monkeypatch.setattr(SimulatedExecutor, "finished", raising)
    one.run()
    queries = one.engine.snapshot()["queries"]
    assert (queries["bad"]["state"], queries["bad"]["reason"]) == ("quarantined", "it raised")
    assert (queries["bad"]["tuples_out"], queries["bad"]["waiting"]) == (0, 5)
    assert queries["good"]["tuples_out"] == 5


def test_a_query_that_may_end_the_run_is_in_units_of_its_own_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    one = world("bad", "good", "fine", tuples=1)
    units: list[tuple[str, ...]] = []
    submit = SimulatedExecutor.submit

    def noting(self: SimulatedExecutor, unit: Unit) -> None:
        units.append(tuple(stream for chain in unit.chains for stream in chain.writes))
        submit(self, unit)

    monkeypatch.setattr(SimulatedExecutor, "submit", noting)
    monkeypatch.setattr(SimulatedExecutor, "alone", frozenset({"bad"}))
    one.run()
    assert units == [("good", "fine"), ("bad",)]


def test_an_output_that_takes_nothing_holds_its_query_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    one = world("free", "held")

    def held(self: SimulatedLog) -> Mapping[str, str]:
        return {"held": "its sink is slow"} if one.engine.clock.now() < 10.0 else {}

    monkeypatch.setattr(SimulatedLog, "held", held)
    one.engine.set_policy(RoundRobin())
    one.run(9.0)
    assert (answered(one, "free"), answered(one, "held")) == (5, 0)
    states = {name: (query["state"], query["reason"]) for name, query in one.engine.snapshot()["queries"].items()}
    assert states == {"free": ("active", None), "held": ("held back", "its sink is slow")}
    one.run()
    assert answered(one, "held") == 5
    assert one.engine.snapshot()["queries"]["held"]["state"] == "active"


def test_a_query_that_comes_back_is_held_if_its_output_still_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one = world("held")
    monkeypatch.setattr(SimulatedLog, "held", lambda self: {"held": "full"} if one.engine.clock.now() < 10.0 else {})
    one.run(1.0)
    query = one.engine.board.queries[0].query
    one.engine.drop_query("held")
    one.engine.add_query(query, {})
    one.run(9.0)
    assert answered(one, "held") == 0
    one.run()
    assert answered(one, "held") == 5


def test_a_stop_that_drains_waits_for_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    one = world("held")
    monkeypatch.setattr(SimulatedLog, "held", lambda self: {"held": "full"} if one.engine.clock.now() < 10.0 else {})
    one.run(5.0)
    one.engine.stop(drain=True)
    one.run()
    assert answered(one, "held") == 5


def test_a_drain_that_brings_nothing_about_ends_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    one = world("q", tuples=1)
    finished = SimulatedExecutor.finished

    def full(self: SimulatedExecutor) -> Sequence[UnitResult]:
        return [replace(result, retry="the disk is full", chains=(), files=()) for result in finished(self)]

    monkeypatch.setattr(SimulatedExecutor, "finished", full)
    one.run(5.0)
    one.engine.stop(drain=True)
    with pytest.raises(Undrained, match="the disk is full; the next run continues with it"):
        one.run()
    assert one.engine.clock.now() < 5.0 + 2 * DRAIN_PATIENCE
    assert one.engine.snapshot()["queries"]["q"]["waiting"] == 1


def test_a_drain_goes_on_as_long_as_something_is_brought_about(monkeypatch: pytest.MonkeyPatch) -> None:
    one = world("q", tuples=20)
    one.engine.set_policy(RoundRobin(1))
    finished, tries = SimulatedExecutor.finished, 0

    def flaky(self: SimulatedExecutor) -> Sequence[UnitResult]:
        nonlocal tries
        results = finished(self)
        tries += len(results)
        # Eight tries for each tuple: with the pauses between them some twenty seconds.
        return results if tries % 9 == 0 else [replace(each, retry="busy", chains=(), files=()) for each in results]

    monkeypatch.setattr(SimulatedExecutor, "finished", flaky)
    one.run(20.0)
    one.engine.stop(drain=True)
    one.run()
    assert one.engine.clock.now() > 20.0 + 2 * DRAIN_PATIENCE
    assert answered(one, "q") == 20


def test_a_drain_does_not_wait_for_ever_for_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    one = world("held")
    monkeypatch.setattr(SimulatedLog, "held", lambda self: {"held": "its sink never returns"})
    one.run(5.0)
    one.engine.stop(drain=True)
    with pytest.raises(Undrained, match="query held is held back, its sink never returns"):
        one.run()


def test_a_stop_at_once_can_give_up_what_is_running() -> None:
    one = World({"s": np.arange(1.0)}, [SimulatedQuery.straight("q", "s", (Profile(1000.0),))], Everything())
    one.run(5.0)
    one.engine.stop(drain=False)
    one.engine.give_up()
    one.run()
    assert one.engine.clock.now() < 1000.0
    assert one.engine.snapshot()["queries"]["q"]["waiting"] == 1


@pytest.mark.parametrize("again", ["null", "fail"])
def test_a_query_that_is_put_back_is_as_strict_as_it_says_now(again: Literal["null", "fail"]) -> None:
    one = Application({})
    one.append("s", [(1.0, "a", 0)])
    sql, schemas = "SELECT 10 / v AS x FROM s", {"s": SCHEMA}
    for on_error in ("fail", again):
        one.log.declare("q")
        one.engine.add_query(build_query("q", sql, schemas, on_error=on_error), schemas)
        one.engine.run()
        stopped = one.engine.board.queries[-1].reason
        one.engine.drop_query("q")
    assert (stopped is None) == (again == "null")
