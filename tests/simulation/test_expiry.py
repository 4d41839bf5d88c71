"""When simulated tuples expire: through filters, windows and joins, and under delays."""

from __future__ import annotations

import math

import numpy as np

from freshet.policies import Everything, FirstComeFirstServed
from freshet.quality.timeliness import counts_of
from freshet.simulation.executor import Profile
from freshet.simulation.fast import FastWorld
from freshet.simulation.world import SimulatedQuery, World


def test_a_tuple_expires_its_validity_after_its_event_time() -> None:
    streams = {"s": np.array([1.0, 2.0, 3.0])}
    query = SimulatedQuery.straight("q", "s", [Profile(0.25), Profile(0.5)])
    created = {"s": np.array([0.5, 0.75, 3.0])}
    for kind in (World, FastWorld):
        world = kind(streams, [query], FirstComeFirstServed(1), validity={"s": 2.0}, created=created)
        world.run()
        expiries, departures = world.due()["q"]
        assert expiries.tolist() == [2.5, 2.75, 5.0]
        assert departures.tolist() == [1.75, 2.75, 3.75]
        assert counts_of(expiries, departures).on_time == 3


def test_without_a_validity_nothing_expires() -> None:
    world = World({"s": np.zeros(2)}, [SimulatedQuery.straight("q", "s", [Profile(1.0)])], Everything())
    world.run()
    assert world.due()["q"][0].tolist() == [math.inf, math.inf]


def test_an_answer_of_a_window_expires_with_its_newest_tuple() -> None:
    window = SimulatedQuery("w", {"w": Profile(0.0, slide=10.0)}, {"w": ("s",)})
    world = World({"s": np.array([1.0, 4.0, 9.0, 12.0])}, [window], Everything(), validity={"s": 5.0})
    world.run()
    # Boundaries at 10 and 20; the newest tuples before them came at 9 and 12.
    assert world.due()["w"][0].tolist() == [14.0, 17.0]


def test_a_moving_aggregate_expires_with_the_tuple_that_brings_its_answer_out() -> None:
    # Three hours of ticks that are worth seconds (WU §4.2.1): taken literally no answer could be in time.
    average = SimulatedQuery("m", {"m": Profile(0.0, lasts=10_800.0)}, {"m": ("s",)})
    world = World({"s": np.array([0.0, 5_000.0, 10_000.0])}, [average], Everything(), validity={"s": 5.0})
    world.run()
    assert world.due()["m"][0].tolist() == [5.0, 5_005.0, 10_005.0]


def test_a_pair_expires_with_the_first_of_its_two_tuples() -> None:
    streams = {"s": np.arange(0.0, 200.0), "t": np.arange(0.5, 200.0)}
    join = SimulatedQuery("j", {"j": Profile(1e-3, lasts=4.0)}, {"j": ("s", "t")})
    world = World(streams, [join], Everything(), validity={"s": 3.0, "t": 6.0})
    world.run()
    rest = world.due()["j"][0] - world.departed()["j"][0]
    of_t = world.departed()["j"][0] % 1.0 == 0.5
    # A tuple of t has a partner of s that is up to 4 s older, so the pair expires up to 3 s later, or has expired. A
    # tuple of s expires before its partner, unless that is more than 3 s older.
    assert -1.0 <= rest[of_t].min() < -0.5
    assert 2.5 < rest[of_t].max() <= 3.0
    assert 2.0 <= rest[~of_t].min() < 2.5
    assert rest[~of_t].max() == 3.0


def test_answers_expire_alike_whatever_the_schedule() -> None:
    rng = np.random.default_rng(3)
    streams = {name: np.sort(rng.uniform(0.0, 40.0, 60)) for name in "st"}
    graph = {"a": ("s",), "j": ("a", "t"), "b": ("j",)}
    profiles = {"a": Profile(0.1, 0.7), "j": Profile(0.2, 0.5, lasts=3.0), "b": Profile(0.1)}
    found = []
    for policy in (Everything(), FirstComeFirstServed(1), FirstComeFirstServed(7)):
        world = World(streams, [SimulatedQuery("q", profiles, graph)], policy, validity={"s": 4.0, "t": 5.0})
        world.run()
        found.append(np.sort(world.due()["q"][0]))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
