"""The study of freshness on Spark: its load, its queries, its model, and a run that is far too short to mean much."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.bench.freshness import BURSTY, STREAMS, error, freshness
from freshet.bench.freshness.fit import SUFFIXES, fit_handling
from freshet.bench.freshness.load import BURST, Load, LoadBatch, MeasuredCosts
from freshet.bench.freshness.model import predict
from freshet.bench.freshness.queries import SCHEMA, make_rows, questions
from freshet.bench.freshness.sets import InOrder, with_sets
from freshet.bench.rig.notes import StepNote
from freshet.bench.stage import Stage
from freshet.kernels import Program
from freshet.model import ARRIVAL, OperatorRun, parse_schema
from freshet.policies import FirstComeFirstServed, FixedPrice, Policy, RoundRobin, create
from freshet.simulation.executor import Profile
from freshet.simulation.fast import FastWorld
from freshet.simulation.world import SimulatedQuery
from freshet.sql import build_query


def costs_of(asked, overhead: float, per_link: float = 1e-8) -> MeasuredCosts:
    profile = {suffix: (per_link, 0.5 if suffix != "project" else 1.0) for suffix in SUFFIXES}
    return MeasuredCosts(
        overhead,
        {f"{each.name}.{suffix}": (c * each.links, s) for each in asked for suffix, (c, s) in profile.items()},
    )


def test_queries_have_the_selectivity_and_the_relative_cost_they_are_made_for() -> None:
    schema = parse_schema(SCHEMA)
    rows = make_rows(20_000, seed=3)
    table = rows.append_column(ARRIVAL, [np.zeros(rows.num_rows, dtype=np.int64)])
    asked = questions(60, STREAMS)
    assert len({text for each in asked for text in each.predicates}) == 2 * len(asked)
    for each in asked[:12]:
        query = build_query(each.name, each.sql, {each.stream: schema})
        assert query.graph.order == tuple(f"{each.name}.{suffix}" for suffix in SUFFIXES)
        operators = [query.graph.operators[name] for name in query.graph.order]
        [output] = Program([operators], schema).run(table)
        assert output.failure is None
        assert output.passed[-1] / rows.num_rows == pytest.approx(each.selectivity, abs=0.05)
        assert each.sql.count("%") >= each.links


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    seconds=st.floats(5.0, 60.0),
    overhead=st.floats(0.005, 0.05),
    utilization=st.floats(0.3, 1.2),
    times=st.sampled_from((0.55, 6.0)),
)
def test_arrivals_need_the_share_of_time_that_is_wanted(
    seed: int, seconds: float, overhead: float, utilization: float, times: float
) -> None:
    asked = questions(50, STREAMS)
    costs = costs_of(asked, overhead)
    events = Load(seconds, utilization, times, BURSTY).events(costs, asked, seed)
    assert events[0].time == 0.0
    assert [event.time for event in events] == sorted(event.time for event in events)
    assert events[-1].time < seconds
    plain = {event.rows for event in events if event.stream not in BURSTY}
    bursts = {event.rows for event in events if event.stream in BURSTY}
    assert len(plain) <= 1
    assert bursts <= {BURST * rows for rows in plain} or not plain
    steps = [(event, each.name) for event in events for each in asked if each.stream == event.stream]
    work = sum(event.rows * costs.per_row(name) for event, name in steps)
    if len(events) > 2:
        assert work + len(steps) * overhead == pytest.approx(utilization * seconds, rel=0.02)
        assert work / (len(steps) * overhead) > times - 0.01


def test_costs_are_sums_over_steps() -> None:
    def step(seconds: float, rows: int, passed: int, whole: float) -> StepNote:
        return StepNote(whole, seconds, 1, (("q.filter_1", OperatorRun(0, rows, passed, seconds)),))

    costs = MeasuredCosts.of([step(1.0, 100, 50, 1.5), step(2.0, 300, 50, 2.3)])
    assert costs.overhead == pytest.approx(0.4)
    assert costs.operators == {"q.filter_1": (3.0 / 400, 0.25)}
    earlier = MeasuredCosts(9.0, {"q.filter_1": (9.0, 0.9), "q.filter_2": (1.0, 0.5)})
    assert costs.over(earlier).operators == {"q.filter_1": (3.0 / 400, 0.25), "q.filter_2": (1.0, 0.5)}
    assert costs.over(earlier).overhead == costs.overhead


def step_of(rows_in: int, rows_out: int, outside: float, seconds: float = 1.0) -> StepNote:
    runs = tuple(
        (f"q.{suffix}", OperatorRun(0, rows_in, rows_out if suffix == "project" else rows_in, seconds / len(SUFFIXES)))
        for suffix in SUFFIXES
    )
    return StepNote(seconds + outside, seconds, 1, runs)


SIZES = st.lists(st.tuples(st.integers(1, 400_000), st.floats(0.1, 1.0)), min_size=6, max_size=30)


@given(sizes=SIZES, fixed=st.floats(0.01, 0.1), row_in=st.floats(0.0, 1e-7), row_out=st.floats(0.0, 1e-7))
def test_overhead_and_the_handling_of_rows_are_told_apart(
    sizes: list[tuple[int, float]], fixed: float, row_in: float, row_out: float
) -> None:
    rows = [(100, 10), (100, 90), (300_000, 30_000), (300_000, 270_000), *((n, int(n * share)) for n, share in sizes)]
    steps = [step_of(came, left, fixed + row_in * came + row_out * left) for came, left in rows]
    handling = fit_handling(steps)
    assert handling == pytest.approx((row_in, row_out), abs=1e-12)
    costs = MeasuredCosts.of(steps, handling)
    assert costs.overhead == pytest.approx(fixed)
    assert costs.handling == handling
    took = sum(step.seconds for step in steps)
    priced = sum(came * costs.per_row("q") + costs.overhead for came, _ in rows)
    assert priced == pytest.approx(took)


@given(outside=st.lists(st.floats(0.001, 1.0), min_size=4, max_size=12))
def test_handling_never_gives_time_back(outside: list[float]) -> None:
    steps = [step_of(100 + 1000 * place, 7 * place * place, each) for place, each in enumerate(outside)]
    assert min(fit_handling(steps)) >= 0.0


def test_longer_trains_have_no_more_overhead_where_writing_takes_longer() -> None:
    steps = [step_of(rows, rows // 2, 0.03 + 1e-7 * rows) for rows in (100, 20_000, 300_000)]
    handling = fit_handling(steps)
    assert [handling.rest(step) for step in steps] == pytest.approx([0.03] * 3)
    assert MeasuredCosts.of(steps[2:]).overhead == pytest.approx(0.06)


def steps_of(policy: Policy, overhead: float = 0.0) -> tuple[int, float]:
    queries = [SimulatedQuery.straight(f"q{number}", "s", (Profile(1.0),)) for number in range(6)]
    world = FastWorld({"s": np.zeros(2)}, queries, policy, overhead=overhead, departs="unit")
    world.run()
    return world.work.decisions, world.outcome().response


@pytest.mark.parametrize("inner", [RoundRobin, FirstComeFirstServed])
def test_an_order_runs_together_what_is_worth_the_price(inner: type[Policy]) -> None:
    assert steps_of(InOrder(inner(), FixedPrice(0.0))) == steps_of(inner())
    assert steps_of(InOrder(inner(), FixedPrice(4.0)))[0] == 3
    decisions, response = steps_of(InOrder(inner(), FixedPrice(100.0)))
    assert decisions == 1
    assert response == 12.0


def test_set_mode_is_there_for_every_policy() -> None:
    for name in ("fas-mcq", "rb-mcq", "rr", "fcfs"):
        # The overhead is learned in the first step.
        assert steps_of(with_sets(name), overhead=5.0)[0] < steps_of(create(name), overhead=5.0)[0]


def test_a_prediction_is_what_one_can_work_out_by_hand() -> None:
    asked = questions(10, ("s1", "s2"))[:1]
    costs = MeasuredCosts(0.5, {"q0.filter_1": (1e-3, 1.0), "q0.filter_2": (0.0, 1.0), "q0.project": (0.0, 1.0)})
    events = [LoadBatch(0.0, "s1", 1000, 0), LoadBatch(5.0, "s1", 2000, 0)]
    # From due to departure: lag, overhead and work, cut off at the end.
    stale = (0.25 + 0.5 + 1.0) + min(0.25 + 0.5 + 2.0, 10.0 - 5.0)
    assert predict(create("rr"), events, [0.25, 0.25], asked, costs, 10.0) == pytest.approx(stale / 10.0)
    assert predict(create("rr"), events, [0.0, 0.0], asked, costs, 6.0) == pytest.approx((1.5 + 1.0) / 6.0)


def test_the_error_is_relative_and_over_policies() -> None:
    spread = error({"a": [1.1, 1.1], "b": [1.8, 2.0]}, {"a": [1.0, 1.0], "b": [2.0, 2.0]})
    assert spread.middle == pytest.approx((0.1 + 0.05) / 2)
    assert spread.ends == pytest.approx((0.05, 0.1))


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_freshness_gives_its_figures(spark, tmp_path) -> None:
    result = freshness(Stage(tmp_path), seconds=2.0, repeat=1, queries=20, trains=0.1, warm_up=1)
    figures = result.figures
    for mode in ("", "_set"):
        for other in ("rb", "rr", "fcfs"):
            expected = figures[f"staleness_fas{mode}"] / figures[f"staleness_{other}{mode}"]
            assert figures[f"staleness_fas_vs_{other}{mode}"] == pytest.approx(expected)
        for policy in ("fas", "rb", "rr", "fcfs"):
            assert 0.0 < figures[f"staleness_{policy}{mode}"] <= 1.0
            assert 0.0 < figures[f"predicted_staleness_{policy}{mode}"] <= 1.0
        assert figures[f"simulator_error{mode}"] >= 0.0
        assert figures[f"simulator_error_by_run{mode}"] >= 0.0
        assert 0.0 < figures[f"utilization{mode}"] <= 1.0
        assert figures[f"overhead_ms{mode}"] > 0.0
        assert figures[f"steps{mode}"] > 0
        assert figures[f"rows_per_train{mode}"] >= 1
        assert 0.0 <= figures[f"order_as_predicted{mode}"] <= 1.0
        for name, prefix in (("measured", ""), ("predicted", "predicted_")):
            found = [figures[f"{prefix}staleness_{each}{mode}"] for each in result.conditions["order"][name + mode]]
            assert found == sorted(found)
    assert figures["queries_per_step"] == 1.0
    [[measured, predicted, _, _]] = result.conditions["repetitions"]["rb_set"]
    assert measured == pytest.approx(figures["staleness_rb_set"], abs=1e-4)
    assert predicted == pytest.approx(figures["predicted_staleness_rb_set"], abs=1e-4)
    assert result.spread.keys() >= {"staleness_fas_vs_rb", "staleness_fas_vs_rb_set", "simulator_error"}
