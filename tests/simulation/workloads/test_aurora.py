"""Aurora's testbeds: sizes, rates, periods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from freshet.simulation.workloads.aurora import AuroraWorkload


def test_the_network_of_table_4_2() -> None:
    bed = AuroraWorkload()
    trees = bed.trees()
    assert (len(trees), {len(tree.profiles) for tree in trees}) == (20, {5})
    assert [tree.curve.promise for tree in trees[:2] if tree.curve] == [0.01, 2.0]
    assert bed.capacity == pytest.approx(2000.0)


def test_trees_of_section_3_4_1() -> None:
    tree = AuroraWorkload(applications=1, fanout=3, cost_range=(1e-4, 1e-3)).trees()[0]
    assert (len(tree.profiles), len(tree.inputs)) == (121, 81)
    assert all(len(tree.downstream(place)) == 5 for place in tree.inputs)
    assert all(1e-4 <= profile.cost <= 1e-3 for profile in tree.profiles)


@pytest.mark.parametrize("process", ["even", "staggered", "poisson"])
def test_the_rate_is_kept(process: str) -> None:
    bed = AuroraWorkload(rate=500.0, tuples=20_000, process=process)  # type: ignore[arg-type]
    times = np.sort(np.concatenate(list(bed.arrivals().values())))
    assert len(times) == 20_000
    assert len(times) / times[-1] == pytest.approx(500.0, rel=0.1)


def test_even_arrivals_come_together_and_staggered_ones_do_not() -> None:
    even = AuroraWorkload(tuples=400)
    assert len(np.unique(np.concatenate(list(even.arrivals().values())))) == 20
    staggered = replace(even, process="staggered")
    gaps = np.diff(np.sort(np.concatenate(list(staggered.arrivals().values()))))
    assert np.allclose(gaps, gaps[0])


def test_a_heavy_application_gets_its_share() -> None:
    counts = {number: len(times) for (number, _), times in AuroraWorkload(heavy=0.5).arrivals().items()}
    assert counts[0] == 50_000
    assert max(count for number, count in counts.items() if number) < 3_000


def test_storms_come_after_calms() -> None:
    bed = AuroraWorkload(rate=100.0, storm_rate=400.0, calm=1000, storm=400, tuples=2800)
    assert bed.periods() == [(0.0, 10.0, False), (10.0, 11.0, True), (11.0, 21.0, False), (21.0, 22.0, True)]
    times = np.concatenate(list(bed.arrivals().values()))
    assert int(((times >= 10.0) & (times < 11.0)).sum()) == 400


def test_bursts_come_with_their_first_tuple() -> None:
    times = AuroraWorkload(applications=1, depth=1, rate=10.0, tuples=6, burst=3).arrivals()[0, 0]
    assert times.tolist() == pytest.approx([0.0, 0.0, 0.0, 0.3, 0.3, 0.3])
