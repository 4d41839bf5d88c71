"""Queries with windows and joins, and what runs for them; see ``fixtures/lowered.txt`` for that in words."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from freshet.model import (
    Join,
    Lifetime,
    Network,
    Operator,
    Panes,
    Project,
    QueryGraph,
    Union,
    parse_schema,
)
from freshet.model.operators.join import port_names
from freshet.sql import SqlError, SqlTyper, build_query, describe

Times = dict[str, str | None]
Streams = dict[str, pa.Schema]


def cases() -> list[tuple[str, str]]:
    blocks = (Path(__file__).parent / "fixtures" / "lowered.txt").read_text().removesuffix("\n").split("\n====\n")
    return [(text, expected) for text, expected in (block.split("\n----\n") for block in blocks)]


@pytest.mark.parametrize(("text", "expected"), cases())
def test_query_becomes_graph(text: str, expected: str, streams: Streams, times: Times) -> None:
    query = build_query("q", text, streams, times=times)
    time = query.event_time or ("arrival" if query.has_time else "none")
    assert f"{describe(query.graph)}\ntime: {time}" == expected


@pytest.mark.parametrize("text", [text for text, _ in cases()])
def test_a_fold_reads_plain_columns_and_its_names_are_unique(text: str, streams: Streams, times: Times) -> None:
    query = build_query("q", text, streams, times=times)
    network = Network()
    network.add(query)
    assert len({node.name for node in network.nodes}) == len(network.nodes)
    graph = query.graph
    for end in _members(graph, graph.root):
        assert isinstance(graph.operators[end], Project)
    for name, operator in graph.operators.items():
        if operator.remembers:
            for source, before_it in zip(graph.inputs[name], _inputs(operator), strict=True):
                for before in _members(graph, source):
                    assert isinstance(graph.operators[before], Project)
                    assert before.partition("~")[0] == f"{name}.{before_it}"


def _inputs(operator: Operator) -> list[str]:
    """What the projections in front of a fold are called behind its name."""
    if not isinstance(operator, Join):
        return ["input"]
    return [f"{side}.input" if len(operator.ports) == 2 else side for side in port_names(len(operator.ports))]


def _members(graph: QueryGraph, name: str) -> list[str]:
    """The operators that a node passes on the tuples of: itself, or those that a union brings together."""
    if not isinstance(graph.operators[name], Union):
        return [name]
    return [member for source in graph.inputs[name] for member in _members(graph, source)]


@pytest.mark.parametrize("text", [text for text, _ in cases()])
def test_the_members_of_a_union_have_the_same_columns(text: str, streams: Streams, times: Times) -> None:
    query = build_query("q", text, streams, times=times)
    schemas = query.graph.schemas(streams, SqlTyper())
    for name, operator in query.graph.operators.items():
        if isinstance(operator, Union):
            assert len({schemas[source] for source in query.graph.inputs[name]}) == 1
    assert schemas[query.graph.root].names == list(query.columns)


def test_types_of_what_folds_give_out() -> None:
    schemas = {"s": parse_schema("t timestamp, i int, r float, d decimal(10,2), b boolean, x string")}
    text = (
        "SELECT count(*) AS n, sum(i) AS si, sum(r) AS sr, sum(d) AS sd, avg(d) AS ad, avg(i) AS ai, max(b) AS mb, "
        "approx_percentile(r, 0.5) AS p, stddev(i) AS st, sum(x) AS sx, window_end AS e, sum(d) / count(*) AS q "
        "FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE]"
    )
    schema = build_query("q", text, schemas, times={"s": "t"}).graph.output(schemas, SqlTyper())
    assert [str(kind) for kind in schema.types] == [
        "int64", "int64", "double", "decimal128(20, 2)", "decimal128(14, 6)", "double", "bool", "float", "double",
        "double", "timestamp[us, tz=UTC]", "decimal128(38, 20)",
    ]  # fmt: skip


def joins(text: str, streams: Streams, times: Times) -> list[tuple[str, tuple[int, ...]]]:
    graph = build_query("q", text, streams, times=times).graph
    found = [operator for operator in graph.operators.values() if isinstance(operator, Join)]
    return [(join.name, join.behind) for join in found]


def test_watermarks_of_a_join_go_by_the_time_that_is_read(streams: Streams, times: Times) -> None:
    join = "FROM packets [RANGE 5 s] a JOIN packets [RANGE 7 s] b ON a.src = b.dst"
    assert joins(f"SELECT a.ts {join}", streams, times)[0] == ("q.join_1", (0, 5_000_000))
    assert joins(f"SELECT b.ts {join}", streams, times)[0] == ("q.join_1", (7_000_000, 0))
    assert joins(f"SELECT a.src {join}", streams, times)[0] == ("q.join_1", (0, 0))
    outer = join.replace("JOIN", "LEFT JOIN")
    assert joins(f"SELECT a.ts {outer}", streams, times)[0] == ("q.join_1", (0, 5_000_000))
    # That a left tuple has no partner is known when the right side has passed its window.
    assert joins(f"SELECT a.src {outer}", streams, times)[0] == ("q.join_1", (0, 5_000_000))
    window = f"SELECT count(*) {join} GROUP BY window(b.ts, '1 minute')"
    assert joins(window, streams, times)[0] == ("q.join_1", (7_000_000, 0))


def test_watermarks_of_a_join_under_windows_of_different_sizes(streams: Streams, times: Times) -> None:
    join = "(SELECT a.ts, a.src FROM packets [RANGE 5 s] a JOIN packets [RANGE 7 s] b ON a.src = b.dst)"
    text = f"SELECT src FROM {join} [RANGE 4 s SLIDE 2 s] UNION SELECT src FROM {join} [RANGE 6 s SLIDE 2 s]"
    assert [behind for _, behind in joins(text, streams, times)] == [(0, 5_000_000)] * 2
    text = text.replace("UNION", "UNION ALL").replace("SELECT src FROM (", "SELECT ts, src FROM (")
    text = f"SELECT c.src FROM ({text}) c JOIN packets [RANGE 1 s SLIDE 2 s] d ON c.src = d.src"
    found = joins(text.replace("1 s SLIDE", "3 s SLIDE"), streams, times)
    assert [behind for name, behind in found if name.startswith("q.c")] == [(0, 5_000_000)] * 2


def test_watermarks_of_nested_joins(streams: Streams, times: Times) -> None:
    text = (
        "SELECT {} FROM packets [RANGE 5 s] a JOIN packets [RANGE 7 s] b ON a.src = b.dst "
        "JOIN packets [RANGE 9 s] c ON b.src = c.dst"
    )
    assert joins(text.format("a.ts"), streams, times) == [("q.join_1", (0, 5_000_000, 5_000_000))]
    assert joins(text.format("c.ts"), streams, times) == [("q.join_1", (9_000_000, 9_000_000, 0))]
    assert joins(text.format("a.src"), streams, times) == [("q.join_1", (0, 0, 0))]
    text = text.replace("JOIN packets [RANGE 9 s]", "LEFT JOIN packets [RANGE 9 s]")
    found = dict(joins(text.format("a.ts"), streams, times))
    assert found == {"q.join_1": (0, 0), "q.join_2": (5_000_000, 5_000_000)}


def test_a_join_keeps_what_is_read(streams: Streams, times: Times) -> None:
    text = (
        "SELECT p.src, s.value FROM packets [RANGE 5 s] p JOIN Speed [NOW] s ON p.size = s.lane AND upper(p.src) = type"
    )
    assert build_query("q", text, streams, times=times).graph.operators["q.join_1"] == Join(
        "q.join_1",
        "inner",
        (Lifetime("__time", 5_000_000), Lifetime(None, 1)),
        (("size", "__c1"), ("lane", "type")),
        (("src", 0, "src"), ("value", 1, "value")),
    )


def test_ports_of_folds(streams: Streams, times: Times) -> None:
    text = (
        "SELECT count(*) AS n FROM packets [RANGE 5 s SLIDE 1 s] a, packets [RANGE 7 s SLIDE 1 s] b, "
        "Speed [RANGE 9 s SLIDE 1 s] c WHERE a.src = b.dst AND b.size = c.lane"
    )
    network = Network()
    network.add(build_query("q", text, streams, times=times))
    readers = {node.name: [edge.reader for edge in node.edges] for node in network.nodes}
    assert readers["q.join_1"] == ["q.join_1:0", "q.join_1:1", "q.join_1:2"]
    assert readers["q.aggregate"] == ["q.aggregate"]


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("a.src = b.src AND b.dst = c.dst", (("src", None), ("src", "dst"), (None, "dst"))),
        ("a.src = b.src AND c.src = a.src", (("src",), ("src",), ("src",))),
        ("a.src = b.src AND b.src = c.src AND c.src = a.src", (("src",), ("src",), ("src",))),
        ("a.src = b.src AND a.dst = b.src AND b.src = c.src", (("dst", "src"), ("src", "src"), (None, "src"))),
        ("a.size = b.size AND a.src > b.src", (("size",), ("size",), (None,))),
        ("a.size + 1 = b.size AND b.size = c.price", (("__c1", None), ("size", "size"), (None, "price"))),
        ("a.ok", ((), (), ())),
    ],
)
def test_keys_of_a_join_of_three(where: str, keys: object, streams: Streams, times: Times) -> None:
    """Those that are equal to the same, and have the same type, are one."""
    text = f"SELECT a.src FROM packets [RANGE 5 s] a, packets [RANGE 7 s] b, packets [RANGE 9 s] c WHERE {where}"
    join = build_query("q", text, streams, times=times).graph.operators["q.join_1"]
    assert isinstance(join, Join)
    assert join.keys == keys


def test_a_table_is_an_edge(streams: Streams, times: Times) -> None:
    text = "SELECT h.v FROM packets p JOIN hosts h ON p.src = h.k"
    network = Network()
    network.add(build_query("q", text, streams | {"hosts": parse_schema("k string, v int")}, tables=["hosts"]))
    [node] = [node for node in network.nodes if node.tables]
    assert [(edge.kind, edge.stream) for edge in node.edges] == [("queue", "q.join_1"), ("table", "table:hosts")]
    assert [edge.port for edge in node.queues] == [0]
    assert node.inputs == (0,)


def test_a_window_over_the_output_of_a_query(streams: Streams, times: Times) -> None:
    counts = "SELECT src, count(*) AS n{} FROM packets [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY src"
    timed = build_query("counts", counts.format(", window_end AS at"), streams, times=times)
    known = streams | {"counts": timed.graph.output(streams, SqlTyper())}
    assert (timed.event_time, timed.has_time) == ("at", True)
    text = "SELECT max(n) AS m FROM counts [RANGE 1 HOUR SLIDE 1 HOUR]"
    query = build_query("q", text, known, times=times | {"counts": timed.event_time})
    assert isinstance(query.graph.operators["q.aggregate"], Panes)
    columns = (("n", "n"), ("__time", "at"))
    assert query.graph.operators["q.aggregate.input"] == Project("q.aggregate.input", columns)
    without = build_query("counts", counts.format(""), streams, times=times)
    assert (without.event_time, without.has_time) == (None, False)
    with pytest.raises(SqlError, match="counts has none: select the time column in it"):
        build_query("q", text, known, times=times)


def test_what_passes_tuples_on_passes_their_time_on(streams: Streams, times: Times) -> None:
    def time(text: str) -> tuple[str | None, bool]:
        query = build_query("q", text, streams, times=times)
        return query.event_time, query.has_time

    assert time("SELECT src, ts AS t FROM packets WHERE ok") == ("t", True)
    assert time("SELECT src, ts + INTERVAL 1 HOUR AS t FROM packets") == (None, False)
    assert time("SELECT ts FROM packets UNION ALL SELECT ts FROM packets WHERE ok") == ("ts", True)
    assert time("SELECT ts, price FROM packets UNION ALL SELECT now(), value FROM Speed") == (None, False)
    assert time("SELECT lane FROM Speed") == (None, True)
    assert time("SELECT id FROM calls") == (None, False)


def test_what_is_known_of_the_order_of_an_output(streams: Streams, times: Times) -> None:
    def order(text: str, **orders: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return build_query("q", text, streams, times=times, orders=orders).order

    assert order("SELECT src FROM packets WHERE ok") == ()
    assert order("SELECT src, max(size) AS m FROM packets [ROWS 5] GROUP BY src") == ()
    counts = "SELECT src AS s, upper(dst) AS d, count(*) AS n FROM packets [RANGE 1 s SLIDE 1 s] GROUP BY src, dst"
    assert order("SELECT src AS s, count(*) AS n FROM packets [RANGE 1 s SLIDE 1 s] GROUP BY src") == ("s",)
    assert order("SELECT count(*) AS n FROM packets [RANGE 1 s SLIDE 1 s]") == ()
    assert order(counts) is None, "one of the keys is not given out"
    assert order("SELECT count(*) AS n FROM packets [RANGE 1 s SLIDE 1 s] EMIT CHANGES") is None
    assert order("SELECT src FROM packets UNION ALL SELECT dst FROM packets") is None
    assert order("SELECT a.src FROM packets [RANGE 1 s] a JOIN packets [RANGE 1 s] b ON a.src = b.dst") is None
    # It is passed on from query to query.
    assert order("SELECT lane AS l, value FROM Speed WHERE value > 1", Speed=("lane",)) == ("l",)
    assert order("SELECT value FROM Speed", Speed=("lane",)) is None
    assert order("SELECT lane FROM Speed", Speed=None) is None
    assert order("SELECT lane, count(*) AS n FROM Speed [RANGE 1 s] GROUP BY lane", Speed=("lane",)) == ("lane",)
    for window in ("[ROWS 5]", "[RANGE 1 s]", "[UNBOUNDED]"):
        with pytest.raises(SqlError, match=r"not the same in every run: it needs a window with a SLIDE"):
            order(f"SELECT count(*) AS n FROM Speed {window}", Speed=("lane",))


def test_without_times_all_go_by_the_arrival(streams: Streams) -> None:
    query = build_query("q", "SELECT count(*) AS n FROM packets [RANGE 1 MINUTE SLIDE 1 MINUTE]", streams)
    panes = query.graph.operators["q.aggregate"]
    assert isinstance(panes, Panes)
    assert panes.validity == Lifetime(None, 60_000_000)


def test_local_times_are_taken_as_utc() -> None:
    schemas = {"s": parse_schema("at timestamp_ntz, v int")}
    query = build_query("q", "SELECT sum(v) AS n FROM s [RANGE 1 s SLIDE 1 s]", schemas, times={"s": "at"})
    assert query.graph.operators[query.graph.order[0]].text() == "v, CAST(at AS TIMESTAMP) AS __time"


def test_columns_of_the_stream_win_over_those_of_the_window() -> None:
    schemas = {"s": parse_schema("window_end int, v int")}
    text = "SELECT window_end, window_start, sum(v) AS n FROM s [RANGE 1 s SLIDE 1 s] GROUP BY window_end"
    query = build_query("q", text, schemas)
    columns = (("window_end", "window_end"), ("window_start", "__window_start"), ("n", "__a1"))
    assert query.graph.operators[query.graph.root] == Project("q.project", columns)
