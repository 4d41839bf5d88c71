import numpy as np
import pytest

from freshet.model import Chain, ChainResult
from freshet.quality import QueryMeter, Waiting


def result(arrivals=(), **more):
    return ChainResult(Chain((0,), ()), len(arrivals), (), arrivals, **more)


def test_counts_what_comes_in_and_what_goes_out():
    meter = QueryMeter(start=0.0)
    meter.record(result((1.0,) * 5), 2.0, rows_in=100, ends=False)
    assert (meter.tuples_in, meter.tuples_out, meter.freshness(10.0)) == (100, 0, 1.0)
    meter.record(result((1.0, 1.5)), 3.0, ends=True)
    assert (meter.tuples_in, meter.tuples_out, meter.freshness(10.0)) == (100, 2, 0.8)
    assert meter.response.times().count == 2


def test_a_train_without_output_leaves_the_output_fresh():
    meter = QueryMeter(start=0.0)
    meter.record(result(), 5.0, rows_in=100)
    assert (meter.tuples_in, meter.freshness(10.0)) == (100, 1.0)


def test_a_failed_chain_changes_nothing():
    meter = QueryMeter(start=0.0)
    meter.record(result((1.0,), failure="no such function", errors=3), 2.0, rows_in=10)
    assert (meter.tuples_in, meter.tuples_out, meter.errors) == (0, 0, 0)


@pytest.mark.parametrize("kind", [tuple, list, np.array])
def test_arrivals_may_be_any_sequence(kind):
    meter = QueryMeter(start=0.0)
    meter.record(result(kind([1.0, 2.0]), errors=4), 3.0)
    assert (meter.errors, meter.freshness(10.0), meter.response.times().mean) == (4, 0.8, 1.5)


def test_tuples_that_depart_one_by_one():
    meter = QueryMeter(start=0.0)
    meter.record(result(np.array([1.0, 5.0]), departures=np.array([2.0, 6.0])), 6.0)
    assert (meter.freshness(10.0), meter.response.times().max) == (0.8, 1.0)


def test_what_waits_makes_stale():
    meter = QueryMeter(start=0.0)
    meter.waiting = Waiting(rows=5, bytes=50, since=2.0, probability=0.5)
    snapshot = meter.snapshot(now=10.0)
    assert snapshot["freshness"] == 0.6
    assert (snapshot["waiting"], snapshot["bytes_waiting"], snapshot["oldest_waiting_s"]) == (5, 50, 8.0)
    assert meter.freshness(now=100.0) < 0.52
