import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import Chain, ChainResult, OperatorRun, Promises
from freshet.model.scheduling.unit import KeptCounts
from freshet.quality import Meters, OperatorStatistics, OverheadStatistics, StreamCounts, Waiting


def chain_result(arrivals, **more):
    return ChainResult(Chain((0,), ()), len(arrivals), (), arrivals, **more)


def test_an_empty_run_is_plain_json():
    report = Meters(start=5.0).snapshot(now=5.0)
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["total"]["freshness"] is None
    assert report["overhead"]["per_call_s"] is None


def test_totals_over_queries():
    meters = Meters(start=0.0, workers=2)
    meters.add_query("dear", 0.0)
    meters.add_query("cheap", 0.0, Promises(0.25))
    meters.record("dear", chain_result((2.0, 4.0)), 6.0, rows_in=10)
    meters.record("cheap", chain_result((5.0,)), 6.0, rows_in=20)
    meters.wait("cheap", Waiting(7, 70, 9.0))
    meters.busy(5.0)
    meters.deciding(0.1)
    total = meters.snapshot(now=10.0)["total"]
    assert (total["queries"], total["tuples_in"], total["tuples_out"]) == (2, 30, 3)
    assert (total["waiting"], total["bytes_waiting"]) == (7, 70)
    assert total["freshness"] == pytest.approx((0.6 + 0.8) / 2)
    assert total["weighted_freshness"] == pytest.approx((0.6 + 0.25 * 0.8) / 1.25)
    assert (total["response"]["count"], total["response"]["max_s"]) == (3, 4.0)
    assert total["response"]["mean_s"] == pytest.approx(7 / 3)


def test_workers_decisions_overhead_and_operators():
    meters = Meters(start=0.0, workers=2)
    meters.add_query("q", 0.0)
    meters.busy(2.0, KeptCounts(2, 1, 700))
    meters.busy(3.0, KeptCounts(1, 0, 800))
    meters.deciding(0.5)
    overhead = OverheadStatistics()
    overhead.add(0.02)
    statistics = OperatorStatistics()
    statistics.add(OperatorRun(0, 100, 10, 0.001))
    operators = {"q": {"q.filter_1": statistics, "q.project": OperatorStatistics()}}
    report = meters.snapshot(10.0, running=[8.0], operators=operators, overhead=overhead)
    kept = {"states_found": 3, "states_rebuilt": 1, "kept_bytes": 800}
    assert report["workers"] == {"workers": 2, "units": 2, "busy_s": 5.0, "busy_share": 0.35, **kept}
    assert report["decisions"] == {"decisions": 1, "deciding_s": 0.5, "deciding_share": 0.05}
    assert report["overhead"] == {"calls": 1, "total_s": 0.02, "per_call_s": 0.02}
    seen = report["queries"]["q"]["operators"]
    assert (seen["q.filter_1"]["cost_s"], seen["q.filter_1"]["selectivity"]) == (1e-5, 0.1)
    assert (seen["q.project"]["cost_s"], seen["q.project"]["selectivity"]) == (None, None)


def test_late_and_dead_are_those_of_the_streams_that_a_query_reads():
    meters = Meters(start=0.0)
    meters.add_query("both", 0.0, streams=("a", "b"))
    meters.add_query("other", 0.0, streams=("c",))
    meters.count("a", StreamCounts(tuples=100, late=1, dead=2))
    meters.count("b", StreamCounts(tuples=100, late=10, dead=20))
    report = meters.snapshot(1.0)
    assert (report["queries"]["both"]["late"], report["queries"]["both"]["dead"]) == (11, 22)
    assert (report["queries"]["other"]["late"], report["queries"]["other"]["dead"]) == (0, 0)
    assert report["streams"]["a"]["late"] == 1


def test_quarantine_weight_and_drop():
    meters = Meters(start=0.0)
    meters.add_query("bad", 0.0)
    meters.quarantine("bad", "division by zero")
    meters.promise("bad", Promises(0.5))
    meters.wait("bad", Waiting(1, 8, since=5.0))
    report = meters.snapshot(10.0)
    bad = report["queries"]["bad"]
    assert (bad["state"], bad["reason"], bad["weight"]) == ("quarantined", "division by zero", 0.5)
    assert (bad["freshness"], report["total"]["quarantined"]) == (0.5, 1)
    assert meters.drop_query("bad").state == "quarantined"
    assert meters.snapshot(10.0)["queries"] == {}


times = st.floats(0, 50)


@given(
    st.lists(st.tuples(st.booleans(), st.lists(times, max_size=30), times, st.booleans()), max_size=20),
    st.floats(0, 200),
    st.one_of(st.none(), times),
)
def test_every_snapshot_is_plain_json_within_bounds(records, now, since):
    meters = Meters(start=10.0)
    for name in ("q0", "q1"):
        meters.add_query(name, 10.0)
    for second, came, took, simulated in records:
        arrivals = np.sort(came)
        departure = 50.0 + took
        departures = np.full(len(came), departure) if simulated else None
        meters.record(f"q{int(second)}", chain_result(arrivals, departures=departures), departure, rows_in=100)
    meters.wait("q0", Waiting(0 if since is None else 3, 0, since))
    report = meters.snapshot(now)
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    for query in report["queries"].values():
        assert query["freshness"] is not None
        assert 0.0 <= query["freshness"] <= 1.0
    assert report["total"]["tuples_out"] == report["total"]["response"]["count"]
