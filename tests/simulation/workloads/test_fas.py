"""The testbed of FAS §6 has the properties that the paper states."""

from __future__ import annotations

import numpy as np
import pytest

from freshet.simulation.executor import Profile
from freshet.simulation.workloads.fas import TIME_UNIT, FasWorkload
from freshet.simulation.workloads.traces import trace_folder
from freshet.simulation.world import SimulatedQuery


def profiles(queries: list[SimulatedQuery]) -> list[list[Profile]]:
    return [list(query.operators.values()) for query in queries]


def test_the_default_is_the_papers_table_1() -> None:
    bed = FasWorkload()
    assert (bed.queries, bed.operators, bed.streams, bed.tuples, bed.bursty) == (250, 3, 10, 10_000, 5)
    queries = profiles(bed.queries_of(FasWorkload(tuples=1).streams_of()))
    assert {first.cost / TIME_UNIT for first, _, _ in queries} == {1.0, 2.0, 4.0}
    assert {len({each.cost for each in query}) for query in queries} == {1}
    assert all(first.selectivity == second.selectivity for first, second, _ in queries)
    assert all(last.selectivity == 1.0 for _, _, last in queries)
    assert {first.selectivity for first, _, _ in queries} == {step / 10 for step in range(1, 11)}


@pytest.mark.parametrize("utilization", [0.1, 0.95])
def test_the_work_that_arrives_is_the_utilization(utilization: float) -> None:
    bed = FasWorkload(utilization=utilization, tuples=4000)
    streams = bed.streams_of()
    assert bed.load(streams) == pytest.approx(utilization)
    work = 0.0
    for query in bed.queries_of(streams):
        first, second, third = query.operators.values()
        expected = first.cost + first.selectivity * (second.cost + second.selectivity * third.cost)
        (stream,) = query.streams
        work += expected * len(streams[stream]) / streams[stream][-1]
    assert work == pytest.approx(utilization, rel=0.05)


def test_bursts_keep_the_rate() -> None:
    streams = FasWorkload(tuples=5000, bursty=3).streams_of()
    for number, times in enumerate(streams.values()):
        moments, counts = np.unique(times, return_counts=True)
        assert set(counts) == ({10} if number < 3 else {1})
        assert len(times) == 5000
        assert times[-1] == pytest.approx(next(iter(streams.values()))[-1], rel=0.1)
        assert len(moments) == (500 if number < 3 else 5000)


def test_skew_moves_selectivities_toward_1() -> None:
    means = [
        np.mean([first.selectivity for first, *_ in profiles(FasWorkload(zipf=zipf).queries_of({"s": np.empty(0)}))])
        for zipf in (0.0, 1.0, 2.0)
    ]
    assert 0.5 < means[0] < 0.6 < means[1] < means[2]


def test_equal_costs() -> None:
    queries = profiles(FasWorkload(equal_costs=True).queries_of({"s": np.empty(0)}))
    assert {each.cost for query in queries for each in query} == {TIME_UNIT}


@pytest.mark.skipif(trace_folder() is None, reason="needs the real traces in ../shared/data")
def test_on_traces_costs_are_scaled_to_the_utilization() -> None:
    bed = FasWorkload(queries=10, trace_seconds=30.0, utilization=0.7)
    streams = bed.streams_of()
    assert list(streams) == ["packets", "events"]
    assert all(len(times) > 1000 and times[0] == 0.0 and times[-1] < 30.0 for times in streams.values())
    assert bed.load(streams) == pytest.approx(0.7)
