"""Weights that live, in simulated time: by the time of day, by followers, and ageing with its bound (FAS §4.4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from freshet.engine.optimizer.weight_keeper import WeightKeeper
from freshet.model import UserError
from freshet.model.promises.weight_plan import WeightPlan, WeightRule
from freshet.policies import Policy, create
from freshet.policies.ageing import Ageing
from freshet.simulation.executor import Profile
from freshet.simulation.world import SimulatedQuery, World

HOUR = 3600.0


def kept(world: World, rules: dict[str, WeightRule], followers: dict[str, int] | None = None) -> None:
    """Gives a world a keeper of weights; its day begins at 0."""
    engine = world.engine

    def change(name: str, weight: float) -> None:
        engine.set_promises(name, replace(engine.meters.queries[name].promises, weight=weight))

    keeper = WeightKeeper(
        engine,
        lambda now: now % 86_400.0,
        lambda names: {name: (followers or {}).get(name, 0) for name in names},
        change,
    )
    for name, rule in rules.items():
        keeper.add(name, rule)
    engine.observers.append(keeper)


def two(policy: Policy, seconds: float, rate: float) -> World:
    """Two equal queries that together need 1.5 workers."""
    times = np.arange(0.0, seconds, 1.0 / rate)
    queries = [SimulatedQuery.straight(name, name + "_in", [Profile(0.75 / rate)]) for name in ("day", "night")]
    return World({"day_in": times, "night_in": times + 1e-6}, queries, policy)


def test_each_query_is_fresher_in_its_hours() -> None:
    world = two(create("fas-mcq"), 24 * HOUR, 1 / 300.0)
    rules = {
        "day": WeightRule(WeightPlan.parse({"08:00-20:00": 1.0, "else": 0.01})),
        "night": WeightRule(WeightPlan.parse({"20:00-08:00": 1.0, "else": 0.01})),
    }
    kept(world, rules)
    world.run(12 * HOUR)
    weights = {name: meter.promises.weight for name, meter in world.engine.meters.queries.items()}
    assert weights == {"day": 1.0, "night": 0.01}
    world.run()
    waits = {name: departures - arrivals for name, (arrivals, departures) in world.departed().items()}
    hours = {name: arrivals / HOUR for name, (arrivals, _) in world.departed().items()}
    noon = {name: waits[name][(hours[name] > 9) & (hours[name] < 19)].mean() for name in waits}
    assert noon["day"] < 0.2 * noon["night"]


def test_popular_outputs_weigh_more() -> None:
    world = two(create("fas-mcq"), 100.0, 10.0)
    rule = WeightRule(WeightPlan.parse(0.8), subscribers=True)
    kept(world, {"day": rule, "night": rule}, {"day": 4, "night": 1})
    world.run(50.0)
    weights = {name: meter.promises.weight for name, meter in world.engine.meters.queries.items()}
    assert weights == {"day": 0.8, "night": pytest.approx(0.2)}
    queries = world.engine.snapshot()["queries"]
    assert queries["day"]["waiting"] < queries["night"]["waiting"] / 2


def longest(policy: Policy) -> tuple[float, float]:
    """The longest wait of a light query beside heavy ones that never leave it a turn, and the longest step."""
    times = np.arange(0.0, 60.0, 0.1)
    names = ["light", *(f"heavy_{number}" for number in range(6))]
    queries = [
        SimulatedQuery.straight(name, f"{name}_in", [Profile(0.02)], weight=0.001 if name == "light" else 1.0)
        for name in names
    ]
    # 7 x 10 x 0.02 is 1.4 times what can be done.
    world = World({f"{name}_in": times for name in names}, queries, policy, overhead=0.005)
    steps: list[float] = []

    class Steps:
        def tell(self, event: object) -> None:
            result = getattr(event, "result", None)
            if result is not None:
                steps.append(result.finished - result.started)

    world.engine.observers.append(Steps())
    world.run(60.0)
    arrivals, departures = world.departed()["light"]
    came = float(arrivals[-1]) if len(arrivals) else 0.0
    # Tuples that never left count, too.
    return max([60.0 - came, *(departures - arrivals)]), max(steps)


@pytest.mark.parametrize("policy", ["fas-mcq", "rb-mcq"])
def test_ageing_serves_a_light_query_within_its_bound(policy: str) -> None:
    limit = 3.0
    without, _ = longest(create(policy))
    wait, step = longest(Ageing(create(policy), limit))
    assert without > 20.0
    # The limit, the step that runs, one step for each of the others with older tuples, and its own.
    assert wait <= limit + 8 * step
    assert wait < without / 2


def test_the_reason_says_that_age_decided() -> None:
    seen = []
    world = two(Ageing(create("fas-mcq"), 0.5), 20.0, 10.0)

    class Reasons:
        def tell(self, event: object) -> None:
            why = getattr(event, "why", None)
            if why is not None:
                seen.append(str(why()))

    world.engine.observers.append(Reasons())
    world.run()
    assert any("ageing runs 1 of" in each and "has waited for more than 500 ms" in each for each in seen)
    assert any(each.startswith("fas-mcq runs") for each in seen)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (0.0, "outside"),
        (True, "outside"),
        ("high", "outside"),
        ({"08:00-18:00": 2.0, "else": 0.1}, "outside"),
        ({"08:00-18:00": 1.0}, "also needs else"),
        ({"08:00-08:00": 1.0, "else": 0.1}, "begins when it ends"),
        ({"00:00-24:00": 1.0, "else": 0.1}, "is all day: write weight = 1.0"),
        ({"08:00-25:00": 1.0, "else": 0.1}, "25:00 is no time of day"),
        ({"08:61-09:00": 1.0, "else": 0.1}, "08:61 is no time of day"),
        ({"08:00-18:00": 1.0, "17:00-19:00": 0.5, "else": 0.1}, "overlap"),
        ({"22:00-06:00": 1.0, "05:00-07:00": 0.5, "else": 0.1}, "overlap"),
        ({"morning": 1.0, "else": 0.1}, "no time of day"),
    ],
)
def test_bad_weights_are_refused(given: object, told: str) -> None:
    with pytest.raises(UserError, match=told):
        WeightPlan.parse(given)
