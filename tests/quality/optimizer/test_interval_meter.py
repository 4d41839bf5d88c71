"""Figures over the interval between two looks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import Chain, ChainResult
from freshet.quality import QueryMeter, Waiting
from freshet.quality.optimizer import IntervalMeter, IntervalTotals


def answers(meter: QueryMeter, departure: float, *arrivals: float) -> None:
    meter.record(ChainResult(Chain((0,), ()), len(arrivals), (), arrivals), departure)


def test_an_interval_has_means_of_its_own() -> None:
    meter, interval = QueryMeter(start=0.0), IntervalMeter(start=0.0)
    answers(meter, 2.0, 0.0, 1.0)
    first = interval.close(3.0, IntervalTotals.of(meter, {"s": 30}))
    assert (first.observed["latency"], first.observed["throughput"]) == (1.5, 2 / 3)
    answers(meter, 5.0, 4.0)
    second = interval.close(5.0, IntervalTotals.of(meter, {"s": 40}))
    assert (second.observed["latency"], second.observed["throughput"], second.arrivals) == (1.0, 0.5, {"s": 5.0})


def test_a_query_without_output_is_as_late_as_its_oldest_waiting_tuple() -> None:
    meter, interval = QueryMeter(start=0.0), IntervalMeter(start=0.0)
    interval.wait(1.0, Waiting(rows=5, bytes=40, since=0.5))
    figures = interval.close(3.0, IntervalTotals.of(meter, {"s": 5}))
    assert figures.observed == {"latency": 2.5, "memory": 40 * 2 / 3, "throughput": 0.0}
    # Young answers do not hide what waits.
    answers(meter, 6.0, 5.9)
    assert interval.close(6.0, IntervalTotals.of(meter, {"s": 6})).observed["latency"] == 5.5


def test_a_query_that_was_given_nothing_owes_nothing() -> None:
    interval = IntervalMeter(start=0.0, totals=IntervalTotals(arrived={"s": 9}))
    figures = interval.close(3.0, IntervalTotals(arrived={"s": 9}))
    assert figures.observed == {"latency": None, "memory": 0.0, "throughput": None}
    assert figures.arrivals == {"s": 0.0}


def test_a_meter_that_begins_anew_counts_from_there() -> None:
    interval = IntervalMeter(start=0.0, totals=IntervalTotals(100, 500.0, 100, {"s": 7}))
    figures = interval.close(2.0, IntervalTotals(4, 2.0, 4, {"s": 9}))
    assert (figures.observed["latency"], figures.observed["throughput"]) == (0.5, 2.0)
    assert figures.arrivals == {"s": 1.0}


def test_an_interval_without_length_has_no_rates() -> None:
    interval = IntervalMeter(start=1.0)
    interval.wait(1.0, Waiting(rows=1, bytes=8, since=1.0))
    figures = interval.close(1.0, IntervalTotals())
    assert figures.observed == {"latency": 0.0, "memory": 8.0, "throughput": None}


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(0, 10**6)), min_size=1, max_size=20))
def test_memory_is_the_mean_over_time(changes: list[tuple[float, int]]) -> None:
    interval, now, sum_ = IntervalMeter(start=0.0), 0.0, 0.0
    for seconds, size in changes:
        interval.wait(now, Waiting(rows=1, bytes=size, since=0.0))
        now, sum_ = now + seconds, sum_ + seconds * size
    memory = interval.close(now, IntervalTotals()).observed["memory"]
    assert memory == pytest.approx(sum_ / now if now else changes[-1][1])
