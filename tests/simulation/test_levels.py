"""Periodic queries in simulated time, with levels by prediction (RT §4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from freshet.model import Promises
from freshet.model.promises.quality_table import QualityTable
from freshet.policies import FirstComeFirstServed
from freshet.quality.periodic import (
    BestEffort,
    LevelRule,
    ManagedLevels,
    PlannedLevel,
    PredictedLevels,
    ReadyInstance,
    Sampling,
)
from freshet.simulation.executor import Profile
from freshet.simulation.workloads.rtstream import RtWorkload, scaled
from freshet.simulation.world import SimulatedQuery, World


def periodic(name: str, cost: float, *, thin: bool = True, deadline: float = 1.0) -> SimulatedQuery:
    overload = ("defer", "thin") if thin else ("defer",)
    promises = Promises(period=1.0, deadline=deadline, overload=overload, quality=QualityTable.parse("proportional"))
    profiles = {f"{name}.select": Profile(cost, 0.5), f"{name}.sum": Profile(cost / 10, 0.01)}
    inputs = {f"{name}.select": ("s",), f"{name}.sum": (f"{name}.select",)}
    return SimulatedQuery(name, profiles, inputs, promises, {"s": 1.0})


def world_of(
    queries: list[SimulatedQuery], rule: LevelRule, sampling: Sampling = "dynamic", rate: int = 2000
) -> tuple[World, ManagedLevels]:
    made: list[ManagedLevels] = []
    arrivals = np.arange(rate * 15) / rate

    def levels(sampler: object) -> ManagedLevels:
        made.append(ManagedLevels(rule, sampling, sampler))  # type: ignore[arg-type]
        return made[0]

    world = World({"s": arrivals}, queries, FirstComeFirstServed(), known=False, departs="unit", levels=levels)
    world.run()
    return world, made[0]


def late(world: World) -> int:
    """Instances after the first five seconds that were late."""
    return sum(each.finished > each.deadline for each in world.instances if each.release >= 5_000_000)


def test_without_levels_an_overload_is_late() -> None:
    world, _ = world_of([periodic("a", 4e-4), periodic("b", 4e-4)], BestEffort())
    assert late(world) > 10
    assert all(not each.kept for each in world.instances)


@pytest.mark.parametrize("sampling", ["dynamic", "fixed", "off"])
def test_levels_keep_deadlines(sampling: Sampling) -> None:
    """1.68 s of work come in a second; the level that fits is 1 / 1.68."""
    world, manager = world_of([periodic("a", 4e-4), periodic("b", 4e-4)], PredictedLevels(), sampling)
    assert late(world) <= 2
    qualities = [each.quality for each in world.instances if each.release >= 5_000_000]
    fits = 1.0 / 1.68 - (0.1 if sampling == "fixed" else 0.0)
    assert np.mean(qualities) == pytest.approx(fits, abs=0.04)
    found = manager.meters["a"].snapshot()
    assert found["time_error_p50"] == pytest.approx(0.0, abs=0.1)
    assert (found["selectivity_error_p50"] is None) == (sampling == "off")


def test_what_may_not_be_thinned_keeps_everything() -> None:
    world, _ = world_of([periodic("firm", 2e-4, thin=False), periodic("soft", 4e-4)], PredictedLevels())
    assert late(world) <= 1
    assert all(not each.kept for each in world.instances if each.query == "firm")
    assert any(each.kept for each in world.instances if each.query == "soft")


class Hopeful(LevelRule):
    """Has every instance keep nine tenths, and says that this takes a third of a second."""

    name, predicts = "hopeful", True

    def assign(
        self, now: float, instances: Sequence[ReadyInstance], ahead: Sequence[ReadyInstance] = (), workers: int = 1
    ) -> dict[str, PlannedLevel]:
        return {each.key: PlannedLevel(0.9, dict.fromkeys(each.rows, 0.9), 0.33) for each in instances}


def test_an_instance_that_is_too_slow_ends_with_what_it_has_read() -> None:
    """All tuples take 1.68 s. It looks every 5 ms how far it is, and nobody waits behind it."""
    world, _ = world_of([periodic("a", 8e-4)], Hopeful(), "off")
    later = [each for each in world.instances if each.release >= 5_000_000]
    assert len(later) > 5
    for each in later:
        assert each.deadline - 25_000 <= each.finished <= each.deadline + 1_000  # less than 2 % is not worth a part
        assert list(each.kept.values()) == [pytest.approx(1.0 / 1.68, abs=0.04)]
        assert each.quality == pytest.approx(min(each.kept.values()))


def test_the_ratio_is_recorded_with_the_answer() -> None:
    world, _ = world_of([periodic("a", 8e-4)], PredictedLevels())
    for each in world.instances:
        assert each.quality == pytest.approx(min(each.kept.values(), default=1.0))


def test_sampler_time_is_charged() -> None:
    fixed, dynamic = (world_of([periodic("a", 4e-4)], PredictedLevels(), each)[1] for each in ("fixed", "dynamic"))
    shares = [manager.meters["a"].snapshot()["sampling_share"] or 0.0 for manager in (fixed, dynamic)]
    assert shares[0] == pytest.approx(0.09, abs=0.03)
    assert shares[1] <= shares[0] / 2


def test_a_level_that_is_not_needed_costs_nothing() -> None:
    world, _ = world_of([periodic("a", 1e-4), periodic("b", 1e-4)], PredictedLevels())
    assert all(each.quality == 1.0 for each in world.instances if each.release >= 3_000_000)


def test_table_2_saturates_at_its_load() -> None:
    bed = RtWorkload()
    assert bed.due(1.0) == pytest.approx(0.97)
    assert bed.due(1.5) == pytest.approx(1.5 * 0.97, rel=0.01)
    tables = sorted(query.promises.quality.text() for query in bed.queries_of())
    assert tables == ["proportional"] * 10 + ["strict"] * 4 + ["tolerant"] * 10
    assert scaled(Profile(1.0, out_cost=2.0), 3.0).out_cost == 6.0
