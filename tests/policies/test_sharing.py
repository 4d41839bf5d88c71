"""Overlapping queries: what is shared, that answers stay the same, and that shared work is done once."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.kernels import Program
from freshet.model import ARRIVAL, Curve, Network, Project, Query, QueryGraph, parse_schema
from freshet.model.operators import Own
from freshet.policies import Everything, create
from freshet.policies.sharing import Mode, OperatorFigures, share, shared_by
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
        (output,) = Program([operators], source.schema).run(source)
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
    assert set(shared_by(share([A, B], marks={"a.filter_1": 7, "b.filter_1": 7}))) == set(both)
    apart = share([A, B, C], marks={"c.filter_1": 7})
    assert shared_by(apart) == dict.fromkeys(both, ("a", "b"))


def test_a_name_that_is_in_use_stays_and_is_not_given_to_others() -> None:
    taken = {query.name: query.graph for query in share([A, B], taken=[FIRST])}
    assert taken["a"].shared == {f"{FIRST}-2", SECOND}
    # Whoever comes takes up what is there.
    third = build("d", "SELECT k, v FROM s WHERE v > 1 AND k > 3")
    assert shared_by(share([A, B, third], current=taken)) == dict.fromkeys(taken["a"].shared, ("a", "b", "d"))
    # Of two groups that do the same at different places each keeps or gets a name of its own.
    other, marks = build("e", "SELECT k + 1 AS k FROM s WHERE v > 1"), {"c.filter_1": 7, "e.filter_1": 7}
    names = shared_by(share([A, B, C, other], current=NOW, marks=marks))
    assert names == {FIRST: ("a", "b"), SECOND: ("a", "b"), f"{FIRST}-2": ("c", "e")}


TIMES = {"s": parse_schema("ts timestamp, k int, v int"), "t": parse_schema("ts timestamp, k int, v int")}
TABLES = {"hosts": parse_schema("k int, owner string")}


def timed(name: str, text: str) -> Query:
    return build_query(name, text, {**TIMES, **TABLES}, times={"s": "ts", "t": "ts"}, tables=TABLES)


WHOLE = [
    "SELECT k, count(*) AS n FROM s [RANGE 10 s SLIDE 5 s] WHERE v > 1 GROUP BY k",
    "SELECT k, sum(v) AS n FROM s [RANGE 10 s] GROUP BY k",
    "SELECT s.k AS k, t.v AS v FROM s [RANGE 10 s] JOIN t [RANGE 5 s] ON s.k = t.k",
    "SELECT k, v FROM s WHERE v > 1 UNION ALL SELECT k, v FROM t WHERE v < 1",
    "SELECT s.k AS k, owner FROM s JOIN hosts ON s.k = hosts.k WHERE owner > 'b'",
    "SELECT v FROM s WHERE v > 1 UNION ALL SELECT v FROM s WHERE v > 1",
]


@pytest.mark.parametrize("text", WHOLE)
def test_queries_with_the_same_text_share_everything_and_keep_their_shape(text: str) -> None:
    queries = [timed("a", text), timed("b", text)]
    forms = share(queries)
    assert forms[0].graph == forms[1].graph
    assert forms[0].graph.shared == set(forms[0].graph.operators)
    assert len(forms[0].graph.operators) == len(queries[0].graph.operators)
    # What one does more than the other, it does by itself.
    more = timed("c", f"SELECT *, 1 AS one FROM ({text})")
    assert any(len(members) == 3 for members in shared_by(share([*queries, more])).values())


@pytest.mark.parametrize("text", WHOLE)
def test_where_an_input_stands_elsewhere_nothing_behind_it_is_shared(text: str) -> None:
    one, two = timed("a", text), timed("b", text)
    *_, first = one.graph.from_output
    form, other = share([one, two], marks={first: 7})
    assert first in form.graph.operators
    assert form.graph.root == one.graph.root
    assert form.graph.shared == other.graph.shared


@pytest.mark.parametrize(
    "other",
    [
        build("b", "SELECT v FROM t WHERE v > 1"),
        build("b", "SELECT v FROM s WHERE v > 2"),
        build("b", "SELECT k FROM s WHERE v > 1", on_error="fail"),
        build("b", "SELECT k FROM s WHERE v > 1", start="latest"),
        build("b", "SELECT k FROM s UNION ALL SELECT k FROM t WHERE v > 1"),
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


NOW = {query.name: query.graph for query in share([A, B])}


def shared_names(
    costs: dict[str, OperatorFigures] | None, now: dict[str, QueryGraph] | None = None, mode: Mode = "auto"
) -> set[str]:
    return set(shared_by(share([A, B], mode, costs=costs, current=now)))


def test_without_measurements_nothing_is_shared() -> None:
    assert share([A, B], "auto") == (A, B)
    assert share([A, B], "auto", costs={}) == (A, B)
    assert share([A, B], "never", costs=figures(1.0)) == (A, B)
    # What is shared already stays so until something speaks against it.
    assert shared_names({}, NOW) == {FIRST, SECOND}


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
    assert shared_names(near, NOW) == {FIRST, SECOND}
    worse = {name: each._replace(cost=1e-7) for name, each in near.items()}
    assert shared_names(worse, NOW) == set()


def test_what_was_measured_of_shared_operators_counts_for_them() -> None:
    assert shared_names({FIRST: OperatorFigures(1e-4, 1.0, 1000.0)}) == {FIRST}


def test_work_that_a_superbox_does_once_saves_nothing() -> None:
    # A common expression is charged to one of the queries that run together, whatever it costs.
    charged = figures(1e-3) | {f"b.filter_{number}": OperatorFigures(1e-9, 1.0, 1000.0, 1.0) for number in (1, 2)}
    assert shared_names(charged) == set()
    assert shared_names(figures(1e-3)) == {FIRST, SECOND}


def test_readers_that_run_in_the_same_step_need_no_queue() -> None:
    def near(together: float) -> dict[str, OperatorFigures]:
        more = {f"{name}.project": OperatorFigures(1e-9, 1.0, 1e5, together) for name in "ab"}
        return {name: each._replace(rate=1e5) for name, each in (figures(1.2e-6, 0.0) | more).items()}

    assert shared_names(near(0.0)) == shared_names(near(0.5)) == set()
    assert shared_names(near(1.0)) == {FIRST, SECOND}
    # One by one among many others is one by one.
    assert shared_names(near(0.01)) == set()


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


def test_operators_of_ones_own_are_shared_by_what_they_are_and_are_given() -> None:
    def query(name: str, key: str, *arguments: int) -> Query:
        own = Own(f"{name}.own_1", key, arguments, ("k",))
        return Query(name, "", QueryGraph.straight("s", [own, Project(f"{name}.project", (("k", "k"),))]))

    same = share([query("a", "__words_1", 3), query("b", "__words_1", 3)])
    assert same[0].graph == same[1].graph
    for other in (query("b", "__words_2", 3), query("b", "__words_1", 4)):
        assert shared_by(share([query("a", "__words_1", 3), other])) == {}
