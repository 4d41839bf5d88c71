"""QoS meters: exact in simulated time, by ranks on Spark."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import Chain, ChainResult, Curve, Promises
from freshet.quality import Meters, QosMeter, overall

CURVE = Curve([(0, 1), (1, 1), (3, 0)])


def result(rows: int, arrivals: list[float], departures: list[float] | None = None) -> ChainResult:
    times = None if departures is None else np.array(departures)
    return ChainResult(Chain((0,), ()), rows, (), np.array(arrivals), times)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=30))
def test_each_departure_counts_exactly(latencies: list[float]) -> None:
    meter = QosMeter(CURVE)
    meter.record(result(len(latencies), [0.0] * len(latencies), latencies), departure=99.0)
    assert meter.mean == pytest.approx(sum(map(CURVE.utility, latencies)) / len(latencies))
    assert meter.late == sum(latency > 1.0 for latency in latencies)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=30))
def test_a_rank_for_each_tuple_is_exact(arrivals: list[float]) -> None:
    arrivals.sort()
    meter = QosMeter(CURVE)
    meter.record(result(len(arrivals), arrivals), departure=5.0)
    assert meter.mean == pytest.approx(sum(CURVE.utility(5.0 - arrival) for arrival in arrivals) / len(arrivals))


def test_few_ranks_stand_for_the_tuples_between_them() -> None:
    meter = QosMeter(CURVE)
    meter.record(result(101, [2.0, 4.0]), departure=5.0)
    exact = np.mean([CURVE.utility(5.0 - arrival) for arrival in np.linspace(2.0, 4.0, 101)])
    assert meter.count == 101
    assert meter.mean == pytest.approx(float(exact))


def test_a_query_without_answers_has_no_part_in_the_average() -> None:
    served, silent = QosMeter(CURVE), QosMeter(CURVE)
    served.add_many([2.0])
    qos = overall({"served": served, "silent": silent})
    assert (qos.average, qos.per_tuple, dict(qos.by_query)) == (0.5, 0.5, {"served": 0.5})


def test_snapshots_tell_both_averages() -> None:
    meters = Meters(0.0)
    meters.add_query("a", 0.0, Promises(curve=CURVE))
    meters.add_query("b", 0.0, Promises(curve=Curve.deadline(10.0)))
    meters.add_query("plain", 0.0)
    meters.record("a", result(1, [0.0], [2.0]), 2.0)
    meters.record("b", result(3, [0.0] * 3, [2.0] * 3), 2.0)
    snapshot = meters.snapshot(2.0)
    assert snapshot["queries"]["a"]["qos"] == {"mean": 0.5, "count": 1, "late": 1}
    assert snapshot["queries"]["plain"]["qos"] is None
    assert snapshot["total"]["qos"] == {"average": 0.75, "per_tuple": 0.875, "late": 1}
