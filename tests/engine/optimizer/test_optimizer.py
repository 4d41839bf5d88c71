"""The optimizer in simulated time: it looks, decides, switches strategies, and remembers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from freshet.engine import Optimizer, RunMemory
from freshet.model import Expectations, Promises, UserError
from freshet.policies import FirstComeFirstServed
from freshet.quality.optimizer import DecisionTable, Look, LookSettings, StrategyState
from freshet.simulation.executor import Profile
from freshet.simulation.world import SimulatedQuery, World

TABLE = DecisionTable.parse(
    {
        "latency": {"pcs(5)": 3, "segment(5)": 1, "simplified-segment(5)": 2},
        "memory": {"pcs(5)": 1, "segment(5)": 3, "simplified-segment(5)": 2},
        "throughput": {"pcs(5)": 3, "segment(5)": 1, "simplified-segment(5)": 2},
    }
)
PATH = (Profile(0.010, 0.2), Profile(0.050, 0.9), Profile(0.010))
"""The path of MAV §3.1: 22 ms for each tuple of the stream, most of them behind the first segment."""


def query(name: str = "q", stream: str = "s", **expect: Any) -> SimulatedQuery:
    made = SimulatedQuery.straight(name, stream, PATH)
    return replace(made, promises=Promises(expect=Expectations.parse(expect)))


def optimizer(memory: RunMemory, **options: Any) -> Optimizer:
    return Optimizer(table=lambda name: TABLE, memory=memory, **options)


def beginning(strategy: str = "segment(5)") -> RunMemory:
    memory = RunMemory()
    memory.states["q"] = StrategyState(strategy)
    return memory


def world(watching: Optimizer | None, *queries: SimulatedQuery, rate: float = 44.0, seconds: float = 15.0) -> World:
    arrivals = np.arange(0.0, seconds, 1.0 / rate)
    return World({"s": arrivals}, queries, FirstComeFirstServed(), optimizer=watching)


def switches(looks: list[Look]) -> list[tuple[str, str]]:
    return [(look.strategy, look.to) for look in looks if look.switches and look.applied]


def test_a_query_leaves_segment_for_pcs_once_and_stays() -> None:
    memory = beginning()
    ran = world(optimizer(memory), query(latency="200 ms"))
    ran.run()
    assert switches(memory.looks["q"]) == [("segment(5)", "pcs(5)")]
    assert [look.time for look in memory.looks["q"]][:4] == [3.0, 6.0, 9.0, 12.0]
    told = ran.engine.snapshot()
    promise = told["queries"]["q"]["promise"]
    assert promise is not None
    assert promise["strategy"] == "pcs(5)"
    assert promise["switches"] == 1
    assert promise["measures"]["latency"]["violated_s"] >= 3.0
    assert told["optimizer"] is not None
    assert told["optimizer"]["switches"] == 1


def test_the_strategy_and_the_age_survive_a_restart() -> None:
    memory = beginning()
    world(optimizer(memory), query(latency="200 ms")).run()
    again = optimizer(memory)
    after = world(again, query(latency="200 ms"), seconds=4.0)
    assert again.strategies() == {"q": "pcs(5)"}
    after.run(until=3.5)
    assert memory.looks["q"][-1].strategy == "pcs(5)"
    # Both runs begin at 0 of their clock, and that is when the query began.
    assert memory.looks["q"][-1].age == 3.0


def test_a_remembered_strategy_that_is_no_policy_any_more_is_given_up() -> None:
    again = optimizer(beginning("gone(5)"))
    world(again, query(memory="1 MB"))
    assert again.strategies() == {"q": "segment(5)"}


def test_a_query_without_a_strategy_begins_with_the_best_one_for_what_is_expected() -> None:
    watching = optimizer(RunMemory())
    world(watching, query("quick", latency="1 s"), query("small", memory="1 MB"), query("plain"))
    assert watching.strategies() == {"quick": "pcs(5)", "small": "segment(5)"}


def test_advice_changes_nothing() -> None:
    memory, plain = RunMemory(), world(None, query())
    advised = world(optimizer(memory, mode="advise"), query(latency="1 ms"))
    plain.run()
    advised.run()
    assert all(np.array_equal(one, other) for one, other in zip(
        plain.departed()["q"], advised.departed()["q"], strict=True
    ))  # fmt: skip
    looks = memory.looks["q"]
    assert looks
    assert not memory.states
    assert {(look.strategy, look.to, look.applied) for look in looks} == {("fcfs", "pcs(5)", False)}


def test_a_pinned_strategy_stays() -> None:
    memory = RunMemory()
    watching = optimizer(memory)
    watching.pin("q", "segment(5)")
    ran = world(watching, query(latency="1 ms"))
    ran.run()
    assert {(look.strategy, look.to, look.applied) for look in memory.looks["q"]} == {("segment(5)", "pcs(5)", False)}
    promise = ran.engine.snapshot()["queries"]["q"]["promise"]
    assert promise is not None
    assert promise["pinned"]
    assert promise["strategy"] == "segment(5)"
    assert not promise["switches"]


def test_a_query_without_expectations_may_be_pinned_and_is_not_looked_at() -> None:
    memory = RunMemory()
    watching = optimizer(memory, mode="off")
    watching.pin("q", "pcs(5)")
    ran = world(watching, query(), query("other", latency="1 ms"), seconds=4.0)
    ran.run()
    assert watching.strategies() == {"q": "pcs(5)"}
    assert watching.next_look is None
    assert not memory.looks


def test_a_pin_must_be_a_policy() -> None:
    with pytest.raises(UserError, match="there is no policy 'fastest'"):
        Optimizer().pin("q", "fastest")


def test_a_strategy_is_set_and_taken_back_while_it_runs() -> None:
    memory = RunMemory()
    watching = optimizer(memory)
    ran = world(watching, query(latency="1 ms"), query("plain"))
    ran.run(until=4.0)
    assert watching.strategies() == {"q": "pcs(5)"}
    with pytest.raises(UserError, match="there is no policy 'fastest'"):
        watching.set_strategy("q", "fastest")
    watching.set_strategy("q", "segment(5)")
    watching.set_strategy("plain", "simplified-segment(5)")
    ran.run(until=7.0)
    assert watching.strategies() == {"q": "segment(5)", "plain": "simplified-segment(5)"}
    pinned = memory.looks["q"][-1]
    assert (pinned.strategy, pinned.to, pinned.applied) == ("segment(5)", "pcs(5)", False)
    watching.set_strategy("q", None)
    watching.set_strategy("plain", None)
    assert watching.strategies() == {"q": "segment(5)"}, "it goes on from the strategy that it has"
    ran.run()
    assert watching.strategies() == {"q": "pcs(5)"}
    assert switches(memory.looks["q"]) == [("segment(5)", "pcs(5)")]
    plain = world(None, query(), query("plain"))
    plain.run()
    assert all(len(ran.departed()[name][0]) == len(plain.departed()[name][0]) for name in ("q", "plain"))


def test_a_strategy_that_is_taken_back_where_nothing_is_changed_leaves_the_policy() -> None:
    memory = RunMemory()
    watching = optimizer(memory, mode="advise")
    ran = world(watching, query(latency="1 ms"))
    watching.set_strategy("q", "segment(5)")
    ran.run(until=4.0)
    watching.set_strategy("q", None)
    assert watching.strategies() == {}
    ran.run()
    assert [look.strategy for look in memory.looks["q"]][:2] == ["segment(5)", "fcfs"]


def test_it_looks_while_a_unit_runs_and_nothing_is_ready() -> None:
    memory = RunMemory()
    slow = replace(
        SimulatedQuery.straight("q", "s", [Profile(10.0)]),
        promises=Promises(expect=Expectations.parse({"latency": "2 s"})),
    )
    World({"s": np.array([1.0])}, [slow], FirstComeFirstServed(), optimizer=optimizer(memory)).run()
    seen = [(look.time, look.measures[0].observed) for look in memory.looks["q"]]
    # The tuple waits since 1, and departs at 11; without the age of what waits, nothing would be seen until then.
    assert seen == [(3.0, 2.0), (6.0, 5.0), (9.0, 8.0), (12.0, 10.0)]


def test_a_query_at_rest_is_not_looked_at_until_something_comes() -> None:
    memory = RunMemory()
    watching = optimizer(memory)
    ran = World({"s": np.array([1.0, 100.0])}, [query(latency="1 s")], FirstComeFirstServed(), optimizer=watching)
    ran.run()
    assert [look.time for look in memory.looks["q"]] == [3.0, 103.0]
    assert watching.next_look is None


def test_expectations_may_change_and_end_while_it_runs() -> None:
    memory = RunMemory()
    watching = optimizer(memory, settings=LookSettings(every=1.0))
    ran = world(watching, query(), seconds=6.0)
    ran.run(until=2.0)
    assert not memory.looks
    ran.engine.set_promises("q", Promises(expect=Expectations.parse({"latency": "1 s"})))
    ran.run(until=4.0)
    assert [look.time for look in memory.looks["q"]] == [3.0, 4.0]
    ran.engine.set_promises("q", Promises())
    ran.run()
    assert len(memory.looks["q"]) == 2
    assert watching.strategies() == {}


def test_another_policy_leaves_strategies_as_they_are() -> None:
    watching = optimizer(RunMemory())
    ran = world(watching, query(latency="1 s"), query("plain"), seconds=3.0)
    ran.run(until=1.0)
    ran.engine.set_policy(FirstComeFirstServed())
    assert watching.strategies() == {"q": "pcs(5)"}
    ran.run()
    assert ran.engine.snapshot()["total"]["waiting"] == 0


def test_a_query_in_quarantine_or_gone_is_not_looked_at() -> None:
    memory = RunMemory()
    watching = optimizer(memory, settings=LookSettings(every=1.0))
    ran = world(watching, query(latency="1 ms"), query("other", latency="1 ms"), seconds=4.0)
    ran.run(until=1.5)
    ran.engine.quarantine("q", "it raised")
    ran.engine.drop_query("other")
    ran.run()
    assert [look.time for look in memory.looks["q"]] == [1.0]
    assert [look.time for look in memory.looks["other"]] == [1.0]
    assert watching.next_look is None


def test_bytes_that_wait_are_a_mean_over_time() -> None:
    memory = RunMemory()
    slow = replace(
        SimulatedQuery.straight("q", "s", [Profile(1.0)]),
        promises=Promises(expect=Expectations.parse({"memory": "1 MB"})),
    )
    streams = {"s": np.zeros(2)}
    World(streams, [slow], FirstComeFirstServed(), optimizer=optimizer(memory), sizes={"s": 80}, most_rows=1).run()
    # Two tuples for a second, one for another, none for the third.
    assert memory.looks["q"][0].measures[0].observed == pytest.approx(80.0)


def test_predictions_decide_if_they_are_asked_for() -> None:
    memory = beginning()
    watching = optimizer(memory, predict=True)
    world(watching, query(latency="200 ms"), rate=60.0, seconds=7.0).run()
    assert switches(memory.looks["q"]) == [("segment(5)", "pcs(5)")]
    [look] = [look for look in memory.looks["q"] if look.switches]
    assert look.predicted.keys() == {"pcs(5)", "segment(5)", "simplified-segment(5)"}
    quick, slow = (look.predicted[name]["latency"] for name in ("pcs(5)", "segment(5)"))
    assert quick is not None
    assert slow is not None
    assert quick < slow
