"""The workload of ``freshet bench optimizer``, and its figures from runs that are given."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from freshet.bench.optimizer import figures_of
from freshet.bench.optimizer.answers import rows_wrong
from freshet.bench.optimizer.load import (
    BEAT,
    CALM,
    FLOOD,
    LATER,
    PARTNERS,
    SCHEMA,
    SHARES,
    SLOT_S,
    SQL,
    WINDOW_S,
    arrivals,
    calm_beat,
    calm_rows,
    phases,
)
from freshet.bench.optimizer.rig import PhaseViolation, SideRun, excess_rows
from freshet.model import parse_schema
from freshet.sql import build_query


def test_the_query_has_eight_operators_and_trims_tuples_in_front_of_joins() -> None:
    schema = parse_schema(SCHEMA)
    graph = build_query("q", SQL, dict.fromkeys(SHARES, schema)).graph
    trims = [name for name in graph.operators if name.endswith(".input")]
    own = [operator.tag for name, operator in graph.operators.items() if name not in trims]
    assert sorted(own) == ["filter"] * 5 + ["join"] * 2 + ["project"]
    assert len(trims) == 4


def test_as_many_rows_come_as_the_load_says() -> None:
    played = phases(114.0)
    came = arrivals(played, capacity=1000.0, seed=1)
    assert [time for time, _ in came] == sorted(time for time, _ in came)
    last = sum(phase.seconds for phase in played)
    for begin, end, load in ((0.0, 28.0, CALM), (last - 40.0, last, FLOOD)):
        rows = sum(table.num_rows for time, chunk in came for table in chunk.values() if begin <= time < end)
        assert rows / (end - begin) / 1000.0 == pytest.approx(load, rel=0.05)


def test_the_calm_has_its_load_by_what_its_batches_take() -> None:
    played, capacity, seconds_per_batch = phases(114.0), 1000.0, 0.09
    came = arrivals(played, capacity, seed=1, calm=calm_beat(seconds_per_batch))
    batches = [chunk for time, chunk in came if time < 28.0]
    assert len(batches) * seconds_per_batch / 28.0 == pytest.approx(CALM, rel=0.02)
    rows = sum(table.num_rows for chunk in batches for table in chunk.values())
    assert rows / len(batches) == pytest.approx(calm_rows(capacity), rel=0.1)
    # The other phases stay as they are.
    others = [time for time, _ in came if time >= 28.0]
    assert len(others) == round((played[1].seconds + played[2].seconds + played[3].seconds) / BEAT)


@pytest.mark.parametrize("calm", [BEAT, 0.29])
def test_rows_meet_a_partner_as_often_at_any_load(calm: float) -> None:
    came = arrivals(phases(114.0), capacity=2000.0, seed=2, calm=calm)
    ids = {name: np.concatenate([chunk[name]["id"].to_numpy() for _, chunk in came]) for name in SHARES}
    values, counts = np.unique(ids["s1"], return_counts=True)
    partners = dict(zip(values.tolist(), counts.tolist(), strict=True))
    for low, high in ((0, 27), (31, 70), (71, 110)):  # slots of the calm, of bursts, and of the overload
        own = ids["s0"][(ids["s0"] >> 32 >= low) & (ids["s0"] >> 32 < high)]
        assert np.mean([partners.get(each, 0) for each in own.tolist()]) == pytest.approx(0.9 * PARTNERS, rel=0.15)


def test_rows_of_the_last_stream_come_after_their_partners_and_within_the_window() -> None:
    for time, chunk in arrivals(phases(20.0), capacity=500.0, seed=3):
        slots = {name: {int(each) >> 32 for each in table["id"].to_pylist()} for name, table in chunk.items()}
        assert slots == {name: {int(time // SLOT_S) - (name == LATER)} for name in SHARES}
    assert 2 * SLOT_S <= WINDOW_S


def run(latency: float, memory: float, violated: float, wrong: int = 0) -> SideRun:
    return SideRun(
        latency, memory, {}, {"calm": PhaseViolation(violated, 0.0), "tight": PhaseViolation(0.0, 1.0)},
        {"calm": 0.5, "tight": 0.9}, 0.002, ((3.0, "pcs"),), 1000, 100, wrong,
    )  # fmt: skip


def test_the_best_fixed_strategy_is_that_of_each_repetition() -> None:
    found = {
        "pcs": [run(0.2, 100.0, 9.0), run(0.2, 100.0, 3.0)],
        "simplified-segment": [run(0.3, 60.0, 5.0), run(0.3, 60.0, 7.0)],
        "segment": [run(0.4, 50.0, 7.0), run(0.4, 50.0, 9.0)],
        "optimizer": [run(0.2, 80.0, 2.0), run(0.2, 80.0, 1.0, wrong=3)],
    }
    figures = figures_of(found)
    assert figures["violation_vs_best_fixed"].middle == pytest.approx(5.0 / 10.0)  # type: ignore[union-attr]
    assert figures["violation_before_overload_vs_best_fixed"] == figures["violation_vs_best_fixed"]
    assert figures["memory_segment_vs_pcs"].middle == 0.5  # type: ignore[union-attr]
    assert figures["latency_pcs_vs_segment"].middle == pytest.approx(0.5)  # type: ignore[union-attr]
    assert (figures["rows_wrong"], figures["rows_checked"]) == (3, 800)


def test_who_knew_the_best_strategy_of_each_phase_would_have_the_least_of_each() -> None:
    def two(calm: float, tight: float) -> SideRun:
        phases = {"calm": PhaseViolation(calm, 0.0), "tight": PhaseViolation(0.0, tight)}
        return SideRun(0.2, 1.0, {}, phases, {"calm": 0.5}, 0.0, (), 1, 1, 0)

    sides = {"pcs": two(1.0, 9.0), "segment": two(5.0, 3.0), "optimizer": two(1.5, 3.5)}
    figures = figures_of({side: [run] for side, run in sides.items()})
    assert figures["violation_best_by_phase_vs_best_fixed"].middle == pytest.approx(4.0 / 8.0)  # type: ignore[union-attr]
    assert figures["violation_vs_best_fixed"].middle == pytest.approx(5.0 / 8.0)  # type: ignore[union-attr]


def test_without_violations_a_ratio_is_still_a_number() -> None:
    calm = SideRun(0.1, 1.0, {}, {"calm": PhaseViolation()}, {"calm": 0.1}, 0.0, (), 1, 1, 0)
    figures = figures_of({side: [calm] for side in ("pcs", "segment", "optimizer")})
    assert figures["violation_vs_best_fixed"].middle == 0.0  # type: ignore[union-attr]


def test_rows_that_come_twice_are_wrong() -> None:
    one = pa.table({"id": [1, 2], "x": [0.5, 0.25]})
    assert rows_wrong(pa.concat_tables([one, one.slice(0, 1)]), one) == 1
    assert rows_wrong(one.slice(0, 0), one) == 2


def test_the_excess_is_what_there_is_no_time_for() -> None:
    assert excess_rows(1500, 10.0, seconds_per_row=0.01) == pytest.approx(1500 - 950)
    assert excess_rows(1500, 10.0, seconds_per_row=0.001) == 0.0


def test_what_thinning_is_worth_is_measured_in_the_overload() -> None:
    def over(violated: float, thinned: int) -> SideRun:
        phase = {"calm": PhaseViolation(), "overload": PhaseViolation(violated)}
        return SideRun(0.1, 1.0, {}, phase, {"calm": 0.1}, 0.0, (), 1, 1, 0, excess=500.0, thinned=thinned)

    sides = {"pcs": over(9.0, 0), "segment": over(9.0, 0), "optimizer": over(8.0, 0), "optimizer-thin": over(2.0, 450)}
    figures = figures_of({side: [run] for side, run in sides.items()})
    assert figures["violation_shed_vs_unshed"].middle == 0.25  # type: ignore[union-attr]
    assert figures["violation_vs_best_fixed"].middle == pytest.approx(8.0 / 9.0)  # type: ignore[union-attr]
    assert figures["violation_before_overload_vs_best_fixed"].middle == 0.0  # type: ignore[union-attr]
    assert figures["shed_vs_excess"].middle == 0.9  # type: ignore[union-attr]
