"""Aurora's testbeds: sizes, rates, periods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from freshet.simulation.workloads.aurora import AuroraWorkload


def test_the_network_of_table_4_2() -> None:
    bed = AuroraWorkload()
    queries = bed.queries_of()
    assert (len(queries), {len(query.operators) for query in queries}) == (20, {5})
    assert [query.promises.curve.promise for query in queries[:2] if query.promises.curve] == [0.01, 2.0]
    assert bed.capacity == pytest.approx(2000.0)


def test_trees_of_section_3_4_1() -> None:
    bed = AuroraWorkload(applications=1, fanout=3, cost_range=(1e-4, 1e-3))
    (query,) = bed.queries_of()
    assert (len(query.operators), query.streams) == (121, tuple(bed.streams_of()))
    assert len(query.streams) == 81
    assert all(1e-4 <= profile.cost <= 1e-3 for profile in query.operators.values())
    way = [0]
    while (after := bed.after[way[-1]]) is not None:
        way.append(after)
    assert len(way) == 5
    assert bed.work == pytest.approx(5 * 5.5e-4, rel=0.2)


@pytest.mark.parametrize("process", ["even", "staggered", "poisson"])
def test_the_rate_is_kept(process: str) -> None:
    bed = AuroraWorkload(rate=500.0, tuples=20_000, process=process)  # type: ignore[arg-type]
    times = np.sort(np.concatenate(list(bed.streams_of().values())))
    assert len(times) == 20_000
    assert len(times) / times[-1] == pytest.approx(500.0, rel=0.1)


def test_even_arrivals_come_together_and_staggered_ones_do_not() -> None:
    even = AuroraWorkload(tuples=400)
    assert len(np.unique(np.concatenate(list(even.streams_of().values())))) == 20
    staggered = replace(even, process="staggered")
    gaps = np.diff(np.sort(np.concatenate(list(staggered.streams_of().values()))))
    assert np.allclose(gaps, gaps[0])


def test_a_heavy_application_gets_its_share() -> None:
    first, *others = map(len, AuroraWorkload(heavy=0.5).streams_of().values())
    assert first == 50_000
    assert max(others) < 3_000


def test_storms_come_after_calms() -> None:
    bed = AuroraWorkload(rate=100.0, storm_rate=400.0, calm=1000, storm=400, tuples=2800)
    assert bed.periods() == [(0.0, 10.0, False), (10.0, 11.0, True), (11.0, 21.0, False), (21.0, 22.0, True)]
    times = np.concatenate(list(bed.streams_of().values()))
    assert int(((times >= 10.0) & (times < 11.0)).sum()) == 400


def test_bursts_come_with_their_first_tuple() -> None:
    (times,) = AuroraWorkload(applications=1, depth=1, rate=10.0, tuples=6, burst=3).streams_of().values()
    assert times.tolist() == pytest.approx([0.0, 0.0, 0.0, 0.3, 0.3, 0.3])
