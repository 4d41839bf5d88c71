"""Overlapping queries: what is shared, that answers stay the same, and that shared work is done once."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.kernels import Program
from freshet.model import ARRIVAL, Curve, Query, parse_schema
from freshet.policies import Everything, create
from freshet.policies.sharing import PREFIX, Shared, share
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
    """The outputs of all queries, each over the table or over the output of another query."""
    tables = {"s": TABLE, "t": TABLE.slice(2)}
    for query in queries:
        (path,) = query.paths
        source = tables[path.stream]
        (output,) = Program([path.stateless], source.schema).run(source)
        tables[query.name] = pa.Table.from_batches([output.batch])
    return {name: table.to_pylist() for name, table in tables.items() if not name.startswith(PREFIX)}


@settings(max_examples=60, deadline=None)
@given(st.lists(texts(), min_size=1, max_size=6))
def test_answers_do_not_change(every: list[str]) -> None:
    queries = tuple(build(f"q{number}", text) for number, text in enumerate(every))
    shared = share(queries)
    assert answers(shared.queries) == answers(queries)
    assert [query.name for query in shared.queries if not query.name.startswith(PREFIX)] == [q.name for q in queries]
    # Nothing is left to share, and the same queries give the same names.
    assert share(queries) == shared
    assert not share(shared.queries).members.keys() - shared.members.keys()


def hidden_of(shared: Shared) -> list[Query]:
    return [query for query in shared.queries if query.name in shared.members]


def test_nested_sharing() -> None:
    shared = share(
        [
            build("a", "SELECT k FROM s WHERE v > 1 AND k > 3"),
            build("b", "SELECT v FROM s WHERE v > 1 AND k > 3"),
            build("c", "SELECT v FROM s WHERE v>1"),
        ]
    )
    outer, inner = hidden_of(shared)
    assert set(shared.members[outer.name]) == {"a", "b", "c"}
    assert set(shared.members[inner.name]) == {"a", "b"}
    assert inner.graph.streams == (outer.name,)


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
    assert share(queries) == Shared(queries, {})


def test_the_hidden_query_has_the_sum_of_the_curves() -> None:
    tight, loose = Curve.deadline(1.0), Curve([(0, 1), (2, 1), (4, 0)])
    queries = [
        replace(build("a", "SELECT k FROM s WHERE v > 1", weight=0.5), curve=tight),
        replace(build("b", "SELECT v FROM s WHERE v > 1", weight=0.75), curve=loose),
    ]
    (hidden,) = hidden_of(share(queries))
    assert hidden.curve is not None
    assert (hidden.weight, hidden.curve.promise, hidden.hidden) == (0.75, 1.0, True)
    assert [hidden.curve.utility(latency) for latency in (0.5, 1.5, 3.0, 5.0)] == [2.0, 1.0, 0.5, 0.0]
    (sooner,) = hidden_of(share(queries, rest={"b": 1.5}))
    assert sooner.curve is not None
    assert (sooner.curve.promise, sooner.curve.slope(0.75)) == (0.5, 0.5)


@given(
    st.lists(st.sampled_from([Curve.deadline(1.0), Curve.deadline(3.0, 1.0), Curve([(0, 1), (5, 0)])]), min_size=1),
    st.floats(0.01, 8.0),
)
def test_total_is_the_sum(curves: list[Curve], latency: float) -> None:
    total = Curve.total(curves)
    assert total.utility(latency) == pytest.approx(sum(curve.utility(latency) for curve in curves))
    assert total.slope(latency) == pytest.approx(sum(curve.slope(latency) for curve in curves), abs=1e-9)
    assert total.promise == pytest.approx(min(curve.promise for curve in curves))


@pytest.mark.parametrize(
    "policy", ["everything", "fcfs", "slope-slack-push", "fixed-priority", "bucketing-push", "aaat"]
)
def test_the_engine_does_shared_work_once(policy: str) -> None:
    queries = [build(name, f"SELECT {name} FROM s WHERE v > 1 AND k > {bound}") for name, bound in (("k", 3), ("v", 4))]
    runs = {}
    for text, every in (("apart", tuple(queries)), ("shared", share(queries).queries)):
        world = World({"s": np.arange(20) / 10}, [], Everything())
        world.engine.set_policy(create(policy))
        names = [operator.name for query in every for operator in query.paths[0].operators]
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
