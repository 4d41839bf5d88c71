"""Overlapping queries: what is shared, that answers stay the same, and that shared work is done once."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.kernels import Program
from freshet.model import ARRIVAL, Curve, Network, Query, parse_schema
from freshet.policies import Everything, create
from freshet.policies.sharing import OperatorFigures, share, shared_by
from freshet.simulation.executor import Profile
from freshet.simulation.world import World
from freshet.sql import build_query

SCHEMAS = {"s": parse_schema("k int, v double"), "t": parse_schema("k int, v double")}
TABLE = pa.table(
    {
        "k": pa.array([1, 2, None, 4, 5, 6, 7, 8], pa.int32()),
        "v": [0.5, None, 3.0, 0.0, -1.0, 9.0, 2.0, 1.5],
        ARRIVAL: list(range(8)),
    }
)
CONDITIONS = ("v > 1", "k % 2 = 0", "1 / v < 2", "k > 3")


def build(name: str, text: str, **options: object) -> Query:
    return build_query(name, text, SCHEMAS, **options)  # type: ignore[arg-type]


@st.composite
def texts(draw: st.DrawFn) -> str:
    conditions = draw(st.lists(st.sampled_from(CONDITIONS), max_size=3, unique=True))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    columns = draw(st.sampled_from(["k", "v", "k, v", "v * 2 AS w"]))
    return f"SELECT {columns} FROM {draw(st.sampled_from(['s', 't']))}{where}"


def answers(queries: tuple[Query, ...]) -> dict[str, list[dict[str, object]]]:
    """The outputs of all queries."""
    tables = {"s": TABLE, "t": TABLE.slice(2)}
    found = {}
    for query in queries:
        source = tables[query.graph.streams[0]]
        operators = [query.graph.operators[name] for name in query.graph.order]
        (output,) = Program([operators], source.schema).run(source)  # type: ignore[list-item]
        found[query.name] = pa.Table.from_batches([output.batch]).to_pylist()
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(texts(), min_size=1, max_size=6))
def test_answers_do_not_change(every: list[str]) -> None:
    queries = tuple(build(f"q{number}", text) for number, text in enumerate(every))
    shared = share(queries)
    assert answers(shared) == answers(queries)
    assert [query.name for query in shared] == [query.name for query in queries]
    # The same queries give the same names, and an operator of one name is the same for all.
    assert share(queries) == shared
    network = Network()
    for query in shared:
        network.add(query)
    names = shared_by(shared)
    assert all(len(members) > 1 for members in names.values())
    assert len(network.nodes) == len(names) + sum(node.query != "" for node in network.nodes)


A = build("a", "SELECT k FROM s WHERE v > 1 AND k > 3")
B = build("b", "SELECT v FROM s WHERE v > 1 AND k > 3")
C = build("c", "SELECT v FROM s WHERE v>1")


def test_nested_sharing() -> None:
    shared = share([A, B, C])
    outer, inner = shared_by(shared).items()
    assert (outer[1], inner[1]) == (("a", "b", "c"), ("a", "b"))
    assert shared[0].graph.order == (outer[0], inner[0], "a.project")
    assert shared[2].graph.order == (outer[0], "c.project")


def test_names_go_by_content() -> None:
    both, all_three = shared_by(share([A, B])), shared_by(share([C, B, A]))
    assert set(both) == set(all_three)
    apart = share([A, B, C], apart={"c": 7})
    assert shared_by(apart) == dict.fromkeys(both, ("a", "b"))
    assert not set(shared_by(share([A, B], apart={"a": 7, "b": 7}))) & set(both)


@pytest.mark.parametrize(
    "other",
    [
        build("b", "SELECT v FROM t WHERE v > 1"),
        build("b", "SELECT v FROM s WHERE v > 2"),
        build("b", "SELECT v FROM s WHERE v > 1", on_error="fail"),
        build("b", "SELECT v FROM s WHERE v > 1", start="latest"),
        build("b", "SELECT v FROM s WHERE v > 1 UNION ALL SELECT v FROM t"),
    ],
)
def test_what_is_not_shared(other: Query) -> None:
    queries = (build("a", "SELECT k FROM s WHERE v > 1"), other)
    assert share(queries) == queries


# Whether it pays

FIRST, SECOND = shared_by(share([A, B]))


def figures(first: float, second: float = 1e-9, selectivity: float = 1.0) -> dict[str, OperatorFigures]:
    """What was measured at 1,000 tuples a second."""
    measured = {}
    for name in "ab":
        measured[f"{name}.filter_1"] = OperatorFigures(first, selectivity, 1000.0)
        measured[f"{name}.filter_2"] = OperatorFigures(second, 1.0, 1000.0 * selectivity)
    return measured


def shared_names(costs: dict[str, OperatorFigures] | None, now: tuple[str, ...] = ()) -> set[str]:
    return set(shared_by(share([A, B], "auto", costs=costs, shared_now=now)))


def test_without_measurements_nothing_is_shared() -> None:
    assert share([A, B], "auto") == (A, B)
    assert share([A, B], "auto", costs={}) == (A, B)
    assert share([A, B], "never", costs=figures(1.0)) == (A, B)
    # What is shared already stays so until something speaks against it.
    assert shared_names({}, (FIRST, SECOND)) == {FIRST, SECOND}


def test_dear_beginnings_are_shared_and_cheap_ones_are_not() -> None:
    assert shared_names(figures(1e-4)) == {FIRST, SECOND}
    assert shared_names(figures(1e-8)) == set()
    # A cheap beginning is shared for the dear operator behind it.
    assert shared_names(figures(1e-8, 1e-4)) == {FIRST, SECOND}
    # A queue costs what is let through.
    assert shared_names(figures(1.2e-6)) == set()
    assert shared_names({name: each._replace(rate=1e4) for name, each in figures(1.2e-6, 0.0, 0.01).items()}) != set()


def test_a_saving_near_nothing_does_not_switch_back_and_forth() -> None:
    near = {name: each._replace(rate=1e5) for name, each in figures(1e-6, 0.0).items()}
    assert shared_names(near) == set()
    assert shared_names(near, (FIRST, SECOND)) == {FIRST, SECOND}
    worse = {name: each._replace(cost=1e-7) for name, each in near.items()}
    assert shared_names(worse, (FIRST, SECOND)) == set()


def test_what_was_measured_of_shared_operators_counts_for_them() -> None:
    assert shared_names({FIRST: OperatorFigures(1e-4, 1.0, 1000.0)}) == {FIRST}


@given(
    st.lists(st.sampled_from([Curve.deadline(1.0), Curve.deadline(3.0, 1.0), Curve([(0, 1), (5, 0)])]), min_size=1),
    st.floats(0.01, 8.0),
)
def test_total_is_the_sum(curves: list[Curve], latency: float) -> None:
    total = Curve.total((curve, 0.0) for curve in curves)
    assert total.utility(latency) == pytest.approx(sum(curve.utility(latency) for curve in curves))
    assert total.slope(latency) == pytest.approx(sum(curve.slope(latency) for curve in curves), abs=1e-9)
    assert total.promise == pytest.approx(min(curve.promise for curve in curves))


@pytest.mark.parametrize(
    "policy", ["everything", "fcfs", "slope-slack-push", "fixed-priority", "bucketing-push", "aaat"]
)
def test_the_engine_does_shared_work_once(policy: str) -> None:
    queries = [build(name, f"SELECT {name} FROM s WHERE v > 1 AND k > {bound}") for name, bound in (("k", 3), ("v", 4))]
    runs = {}
    for text, every in (("apart", tuple(queries)), ("shared", share(queries))):
        world = World({"s": np.arange(20) / 10}, [], Everything())
        world.engine.set_policy(create(policy))
        names = [name for query in every for name in query.graph.order]
        world.engine.executor._profiles = dict.fromkeys(names, Profile(0.05))  # type: ignore[attr-defined]
        for query in every:
            world.engine.add_query(query, {})
        world.run()
        rows = {}
        for query in queries:
            world.log.start_reader("test", query.name, "earliest")
            rows[query.name] = world.log.tuples(world.log.train(query.name, 0, world.log.end(query.name)))[0].tolist()
        work = math.fsum(operator.statistics.seconds for operator in world.engine.board.operators)
        runs[text] = rows, round(work / 0.05)
    assert runs["apart"][0] == runs["shared"][0]
    # 20 tuples through 2 x 3 operators, or through 1 + 2 x 2.
    assert (runs["apart"][1], runs["shared"][1]) == (120, 100)
