"""Stride scheduling: shares of time by weight, whatever the load (CAR §6.3.4)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.model import Promises, UserError
from freshet.policies import create
from freshet.policies.share_of_time import ShareOfTime
from freshet.simulation.executor import Profile
from freshet.simulation.world import SimulatedQuery, World


def seconds_of(world: World) -> dict[str, float]:
    """Seconds of work that each query has got."""
    return {
        name: sum(each["seconds"] for each in query["operators"].values())
        for name, query in world.engine.snapshot()["queries"].items()
    }


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.05, 1.0), st.floats(0.001, 0.02), st.floats(0.1, 1.0)), min_size=2, max_size=6),
    st.sampled_from([0.0, 0.01]),
)
def test_queries_that_always_have_work_get_their_shares(
    drawn: list[tuple[float, float, float]], overhead: float
) -> None:
    """However different their costs are: weight, cost, selectivity are drawn; all tuples are there from the start."""
    queries = [
        SimulatedQuery.straight(f"q{at}", f"s{at}", [Profile(cost, match), Profile(cost / 2)], weight=weight)
        for at, (weight, cost, match) in enumerate(drawn)
    ]
    streams = {f"s{at}": np.zeros(round(60.0 / cost)) for at, (_, cost, _) in enumerate(drawn)}
    world = World(streams, queries, ShareOfTime(0.1), overhead=overhead)
    world.run(until=60.0)
    got, weights = seconds_of(world), {f"q{at}": weight for at, (weight, _, _) in enumerate(drawn)}
    for name, seconds in got.items():
        share = weights[name] / sum(weights.values())
        assert seconds / sum(got.values()) == pytest.approx(share, abs=0.03)


def test_a_weight_that_changes_counts_from_then_on() -> None:
    """A query that nobody followed ran once, at the least weight; now it has as much weight as the other."""
    queries = [SimulatedQuery.straight(name, f"{name}_in", [Profile(0.01)], weight=weight)
               for name, weight in (("new", 1e-6), ("old", 0.5))]  # fmt: skip
    world = World({"new_in": np.zeros(9000), "old_in": np.zeros(9000)}, queries, ShareOfTime(0.05))
    world.run(until=10.0)
    before = seconds_of(world)
    assert 0.0 < before["new"] < 0.2
    world.engine.set_promises("new", Promises(weight=0.5))
    world.run(until=30.0)
    got = seconds_of(world)
    assert got["new"] - before["new"] == pytest.approx(10.0, abs=0.2)
    world.engine.set_promises("new", Promises(weight=0.125))
    world.run(until=50.0)
    assert seconds_of(world)["new"] - got["new"] == pytest.approx(4.0, abs=0.2)


def test_a_query_below_its_share_is_served_at_once_and_the_rest_is_dealt_out() -> None:
    calm = SimulatedQuery.straight("calm", "calm_in", [Profile(0.01)], weight=0.5)
    floods = [SimulatedQuery.straight(name, f"{name}_in", [Profile(0.01)], weight=weight)
              for name, weight in (("two", 0.4), ("one", 0.2))]  # fmt: skip
    streams = {"calm_in": np.arange(0.0, 60.0, 0.1), "two_in": np.zeros(9000), "one_in": np.zeros(9000)}
    world = World(streams, [calm, *floods], ShareOfTime(0.05))
    world.run(until=60.0)
    arrivals, departures = world.departed()["calm"]
    # It uses a tenth of the worker and has a right to 45 %: it waits for the turn that runs, no longer.
    assert (departures - arrivals).max() < 0.05 + 0.01 + 0.02
    got = seconds_of(world)
    assert got["two"] / got["one"] == pytest.approx(2.0, rel=0.05)


def test_time_not_used_is_not_saved_up() -> None:
    late = SimulatedQuery.straight("late", "late_in", [Profile(0.01)])
    always = SimulatedQuery.straight("always", "always_in", [Profile(0.01)])
    streams = {"always_in": np.zeros(9000), "late_in": np.full(3000, 30.0)}
    world = World(streams, [late, always], ShareOfTime(0.05))
    world.run(until=30.0)
    before = seconds_of(world)["always"]
    world.run(until=50.0)
    assert seconds_of(world)["always"] - before == pytest.approx(10.0, rel=0.05)


def test_a_query_that_takes_the_number_of_another_begins_anew() -> None:
    names = ("a", "b", "c")
    queries = {name: SimulatedQuery.straight(name, f"{name}_in", [Profile(0.01)]) for name in names}
    world = World({f"{name}_in": np.zeros(5000) for name in names}, [queries["a"], queries["b"]], ShareOfTime())
    world.run(until=10.0)
    world.engine.drop_query("a")
    world.add(queries["c"])
    world.run(until=20.0)
    got = seconds_of(world)
    assert got["c"] == pytest.approx(5.0, rel=0.1)


def test_its_name_and_its_quantum() -> None:
    made = create("share-of-time(0.2)")
    assert isinstance(made, ShareOfTime)
    assert made.quantum == 0.2
    with pytest.raises(UserError, match="at least 1e-06"):
        create("share-of-time(0)")
