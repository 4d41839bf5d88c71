"""Thinning by the optimizer, in simulated time: when it begins, how much is left out, when it ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from freshet.engine import Event, Optimizer, RunMemory
from freshet.engine.events import Returned
from freshet.model import Expectations, Promises
from freshet.policies import FirstComeFirstServed
from freshet.quality.optimizer import DecisionTable
from freshet.quality.shedding import ON
from freshet.simulation.executor import Profile
from freshet.simulation.world import SimulatedQuery, World

TABLE = DecisionTable.parse({"latency": {"pcs(5)": 2, "segment(5)": 1}})
MUST = {"latency": {"class": "must", "points": "200 ms"}}
COST = 0.022
"""Seconds of work for a tuple, also for one that is left out later in the path."""


def query(name: str = "q", expect: Any = MUST, overload: tuple[str, ...] = ("defer", "thin")) -> SimulatedQuery:
    made = SimulatedQuery.straight(name, "s", [Profile(0.010, 0.2), Profile(0.050, 0.9), Profile(0.010)])
    return replace(made, promises=Promises(expect=Expectations.parse(expect), overload=overload))


def run(*queries: SimulatedQuery, rates: tuple[float, ...], mode: Any = "act") -> tuple[World, RunMemory]:
    """Tuples come for ten seconds at each rate."""
    spans = (np.arange(0.0, 10.0, 1.0 / rate) + 10.0 * number for number, rate in enumerate(rates))
    memory = RunMemory()
    watching = Optimizer(mode=mode, table=lambda name: TABLE, memory=memory)
    world = World({"s": np.concatenate(list(spans))}, queries, FirstComeFirstServed(), optimizer=watching)
    world.run()
    return world, memory


def test_the_excess_is_left_out_and_everything_is_kept_again_when_the_load_falls() -> None:
    world, memory = run(query(), rates=(55.0, 25.0))
    looks = memory.looks["q"]
    assert {look.strategy for look in looks} == {"pcs(5)"}
    load = 55.0 * COST
    thinned = [look for look in looks if look.kept < 1.0]
    assert thinned[0].kept == pytest.approx(1.0 - (load - ON) / load, abs=0.05)
    assert thinned[0].exhausted
    assert thinned[0].rule == "none-better"
    assert looks[-1].kept == 1.0
    told = world.engine.snapshot()["queries"]["q"]
    assert told["rows_thinned"] > 0
    assert world.engine.thinning.sheds == {}


class SlowCommits:
    """Between the end of a unit and the next one, time passes in which no operator runs."""

    def __init__(self, world: World) -> None:
        self._clock = world.engine.clock

    def tell(self, event: Event) -> None:
        if isinstance(event, Returned):
            self._clock.wait(self._clock.now() + 0.04)


def test_time_between_units_is_no_time_of_operators() -> None:
    memory = RunMemory()
    watching = Optimizer(table=lambda name: TABLE, memory=memory)
    arrivals = np.arange(0.0, 60.0, 1.0 / 55.0)
    world = World({"s": arrivals}, [query()], FirstComeFirstServed(), optimizer=watching, most_rows=5)
    world.engine.observers.append(SlowCommits(world))
    world.run(until=60.0)
    # Of each train of five tuples, which come in 91 ms, a share is kept: its work and 40 ms more take 95 % of that.
    wanted = (ON * 5 / 55.0 - 0.04) / (5 * COST)
    kept = [look.kept for look in memory.looks["q"] if look.time > 20.0]
    assert sum(kept) / len(kept) == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize(
    ("expect", "overload", "mode"),
    [
        (MUST, ("defer",), "act"),
        ({"latency": "200 ms"}, ("defer", "thin"), "act"),
        (MUST, ("defer", "thin"), "advise"),
    ],
)
def test_nothing_is_left_out_unless_it_must_and_may_be(expect: Any, overload: tuple[str, ...], mode: Any) -> None:
    world, memory = run(query(expect=expect, overload=overload), rates=(55.0,), mode=mode)
    assert any(look.violated for look in memory.looks["q"])
    assert {look.kept for look in memory.looks["q"]} == {1.0}
    assert world.engine.snapshot()["queries"]["q"]["rows_thinned"] == 0


def test_a_query_that_allows_it_is_thinned_for_another_one() -> None:
    # Both read the same stream: 22 ms each for 30 tuples a second.
    world, memory = run(query(overload=("defer",)), query("other", {}), rates=(30.0,))
    told = world.engine.snapshot()["queries"]
    assert told["q"]["rows_thinned"] == 0
    assert told["other"]["rows_thinned"] > 0
    assert {look.kept for look in memory.looks["q"]} == {1.0}


def test_a_pinned_strategy_is_the_only_one_that_there_is() -> None:
    memory = RunMemory()
    watching = Optimizer(table=lambda name: TABLE, memory=memory)
    watching.pin("q", "segment(5)")
    arrivals = np.arange(0.0, 10.0, 1.0 / 55.0)
    World({"s": arrivals}, [query()], FirstComeFirstServed(), optimizer=watching).run()
    assert any(look.kept < 1.0 for look in memory.looks["q"])


@pytest.mark.parametrize("how", ["nothing is expected", "dropped", "quarantined", "nothing comes for it"])
def test_it_ends_when_no_query_is_left_to_thin_for(how: str) -> None:
    """Nobody looks any more then, and nobody would see that the load has fallen."""
    watched = replace(SimulatedQuery.straight("q", "r", [Profile(0.022)]), promises=query(overload=("defer",)).promises)
    last = 10.0 if how == "nothing comes for it" else 60.0
    arrivals = {"r": np.arange(0.0, last, 1.0 / 25.0), "s": np.arange(0.0, 60.0, 1.0 / 41.0)}
    watching = Optimizer(table=lambda name: TABLE)
    world = World(arrivals, [watched, query("other", {})], FirstComeFirstServed(), optimizer=watching)
    world.run(until=9.5)
    engine = world.engine
    assert set(engine.thinning.sheds) == {"other"}
    if how == "nothing is expected":
        engine.set_promises("q", Promises())
    elif how == "dropped":
        engine.drop_query("q")
    elif how == "quarantined":
        engine.quarantine("q", "its code raised")
    else:
        world.run(until=30.0)
    assert engine.thinning.sheds == {}
    world.run(until=60.0)
    assert engine.thinning.sheds == {}
