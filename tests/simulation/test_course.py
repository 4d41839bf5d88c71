"""The course of a simulated run says what its outcome says, and shows what the papers' figures show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from freshet.model import UserError
from freshet.policies import FirstComeFirstServed, create
from freshet.quality.history import History, HistoryRecord
from freshet.simulation.executor import Profile
from freshet.simulation.workloads.aurora import AuroraWorkload
from freshet.simulation.world import SimulatedQuery, World


def over_time(record: HistoryRecord, values: list[float | None]) -> float:
    passed = np.diff(record["times"])
    return float((np.array([each or 0.0 for each in values[1:]]) * passed).sum() / passed.sum())


def world_of(policy: str, every: float = 0.01, calm: int = 0, storm: int = 0) -> World:
    bed = AuroraWorkload(tuples=6_000, calm=calm, storm=storm)
    full = bed.capacity
    bed = replace(bed, rate=0.6 * full, storm_rate=1.3 * full)
    world = World(
        bed.streams_of(), bed.queries_of(), create(policy), call=21.2e-6, operation=1.037e-6, departs="box",
        history=History(every=every),
    )  # fmt: skip
    world.run()
    return world


def test_the_course_adds_up_to_the_outcome() -> None:
    world = world_of("slope-slack-push(10)", calm=1500, storm=600)
    outcome, record = world.outcome(), world.course()
    assert record["times"][-1] == pytest.approx(world.now, rel=1e-4)
    for name, query in record["queries"].items():
        assert over_time(record, query["freshness"]) == pytest.approx(1.0 - outcome.by_query[name], abs=2e-3)
        assert query["running_qos"][-1] == pytest.approx(outcome.qos.by_query[name], abs=1e-4)
        assert query["waiting"][-1] == 0
    assert any(each is not None and each.startswith("slope-slack-push runs") for each in record["decisions"])
    busy = over_time(record, record["machine"]["busy"])
    assert busy == pytest.approx((outcome.work.processing + outcome.work.overhead) / world.now, abs=0.01)


def test_running_qos_falls_in_each_storm_and_recovers_as_in_fig_4_18() -> None:
    """CAR §4.6.2: a sawtooth, and the drop comes with the storm."""
    world = world_of("fixed-priority-push(10)", calm=2000, storm=1000)
    record = world.course()
    times = np.array(record["times"])
    tight = np.array([each or np.nan for each in record["queries"]["a0"]["running_qos"]])
    bed = AuroraWorkload(tuples=6_000, calm=2000, storm=1000)
    calm, storm = 2000 / (0.6 * bed.capacity), 1000 / (1.3 * bed.capacity)
    before, after = (np.searchsorted(times, time) for time in (0.95 * calm, calm + storm + 0.5))
    again = np.searchsorted(times, 2 * calm + storm) - 1
    assert tight[before] > 0.99
    assert tight[after] < tight[before] - 0.02
    assert tight[again] > tight[after]


def test_a_run_is_sampled_at_the_same_moments_each_time() -> None:
    first, second = (world_of("fcfs").course() for _ in range(2))
    assert first == second


def test_without_a_history_there_is_no_course() -> None:
    world = World({"s": np.array([0.0])}, [SimulatedQuery.straight("q", "s", [Profile(0.5)])], FirstComeFirstServed())
    world.run()
    with pytest.raises(UserError, match="if it is given one"):
        world.course()
