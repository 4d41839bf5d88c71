"""The history of a run: bounded, from its beginning to its end, and true to the meters."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.quality.history import History, MachineSample, QuerySample, RunSample, record_of, settled
from freshet.quality.history.history import LEAST, MOST

NOTHING = QuerySample(0, 0.0, 0, 0.0, None, 0, 0.0, 0, 1.0)
IDLE = MachineSample(0.0, 0, 0.0, 0)


def record(samples: list[RunSample]):
    return record_of(samples, [], {}, app="a", policy="fcfs", workers=1, real=False)


def test_sums_over_all_intervals_are_those_of_the_meters_however_often_samples_were_merged() -> None:
    history, answers, response = History(every=1.0), 0, 0.0
    for second in range(5000):
        answers, response = answers + second % 7, response + 0.01 * (second % 7)
        query = NOTHING._replace(
            answers=answers, response=response, fresh=0.5 * second, waiting=second % 100, p95=0.01 * (second % 50)
        )
        if history.is_due(second):
            history.take(RunSample(float(second), {"q": query}, IDLE))
    assert LEAST <= len(history.samples) <= MOST
    made = record(history.samples)
    times, column = made["times"], made["queries"]["q"]
    passed = [0.0, *(later - earlier for earlier, later in itertools.pairwise(times))]
    seen = sum(rate * each for rate, each in zip(column["out_per_s"], passed, strict=True) if rate is not None)
    last = history.samples[-1].queries["q"].answers
    assert seen == pytest.approx(last, rel=1e-3)
    assert all(each is None or each == pytest.approx(0.01, rel=1e-3) for each in column["latency_s"])
    assert [each for each in column["freshness"][1:] if each is not None] == pytest.approx([0.5] * (len(times) - 1))
    # The greatest of what lay between two samples is kept.
    assert max(each or 0 for each in column["waiting"]) == 99
    assert max(each or 0 for each in column["p95_s"]) == pytest.approx(0.49)


@given(
    st.lists(st.floats(0.001, 5.0), min_size=1, max_size=1500),
    st.sampled_from([1, 30, 700, 5000]),
)
def test_it_stays_bounded_and_covers_the_whole_run(gaps: list[float], queries: int) -> None:
    history, now = History(every=0.01), 0.0
    names = dict.fromkeys(map(str, range(queries if len(gaps) < 200 else 1)), NOTHING)
    for gap in gaps:
        if history.is_due(now):
            history.take(RunSample(now, names, IDLE))
        now += gap
    history.take(RunSample(now, names, IDLE))
    times = [each.time for each in history.samples]
    assert len(times) <= MOST
    assert times == sorted(set(times))
    assert (times[0], times[-1]) == (0.0, now)


def test_a_query_that_comes_later_has_no_values_before() -> None:
    late = NOTHING._replace(fresh=1.0)
    samples = [
        RunSample(0.0, {"a": NOTHING}, IDLE),
        RunSample(1.0, {"a": NOTHING, "b": NOTHING}, IDLE),
        RunSample(2.0, {"a": NOTHING, "b": late}, IDLE),
    ]
    assert record(samples)["queries"]["b"]["freshness"] == [None, None, 1.0]
    assert record(samples)["queries"]["b"]["waiting"] == [None, 0, 0]


def test_a_periodic_query_has_no_freshness() -> None:
    samples = [RunSample(float(time), {"q": NOTHING._replace(fresh=None, answers=time)}, IDLE) for time in range(3)]
    made = record(samples)["queries"]["q"]
    assert made["freshness"] == [None, None, None]
    assert made["out_per_s"] == [None, 1.0, 1.0]


def test_a_meter_that_begins_anew_counts_from_zero() -> None:
    before, after = NOTHING._replace(rated=10, utility=5.0), NOTHING._replace(rated=4, utility=4.0)
    samples = [RunSample(float(at), {"q": each}, IDLE) for at, each in enumerate((NOTHING, before, after))]
    assert record(samples)["queries"]["q"]["qos"] == [None, 0.5, 1.0]


@given(st.lists(st.tuples(st.floats(0.1, 3.0), st.floats(0.0, 3.0)), min_size=1, max_size=30))
def test_settled_seconds_neither_fall_nor_outrun_time(steps: list[tuple[float, float]]) -> None:
    times, fresh, now = [], [], 0.0
    for passed, seconds in steps:
        now += passed
        times.append(now)
        fresh.append(seconds)
    found = settled(times, fresh)
    assert found[-1] == fresh[-1]
    for at in range(1, len(found)):
        assert -1e-9 <= found[at] - found[at - 1] <= times[at] - times[at - 1] + 1e-9
