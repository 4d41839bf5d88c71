from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.model import (
    Call,
    Filter,
    Join,
    Lifetime,
    Moving,
    Operator,
    Project,
    Promises,
    Query,
    Union,
    UserError,
    parse_schema,
)
from freshet.sql import SqlError, build_query

PREDICATES = [
    "size > 3",
    "price / size < 2.5",
    "src LIKE 'a%'",
    "(ok OR size < 9)",
    "NOT ok",
    "dst IN ('x', 'y')",
    "size BETWEEN 1 AND 5",
    "ts IS NOT NULL",
]
STREAM = {"packets": parse_schema("src string, dst string, size int, ts timestamp, price double, ok boolean")}


def ordered(query: Query) -> list[Operator]:
    return [query.graph.operators[name] for name in query.graph.order]


@given(st.lists(st.sampled_from(PREDICATES), min_size=1, max_size=8), st.data())
@settings(max_examples=60, deadline=None)
def test_conjunction_becomes_filters_in_the_given_order(predicates: list[str], data: st.DataObject) -> None:
    """However the conjunction is bracketed."""
    parts = list(predicates)
    while len(parts) > 1:
        place = data.draw(st.integers(0, len(parts) - 2))
        joined = f"{parts[place]} AND {parts[place + 1]}"
        parts[place : place + 2] = [f"({joined})" if data.draw(st.booleans()) else joined]
    query = build_query("q", f"SELECT src FROM packets WHERE {parts[0]}", STREAM)
    operators = ordered(query)
    alone = [ordered(build_query("q", f"SELECT src FROM packets WHERE {text}", STREAM))[0] for text in predicates]
    filters = [operator for operator in operators if isinstance(operator, Filter)]
    assert [f.predicate for f in filters] == [f.predicate for f in alone if isinstance(f, Filter)]
    assert [f.name for f in filters] == [f"q.filter_{number}" for number in range(1, len(predicates) + 1)]
    assert operators[-1] == Project("q.project", (("src", "src"),))


def test_query_on_the_output_of_a_query(streams: dict[str, pa.Schema]) -> None:
    first = build_query("big", "SELECT src, size * 2 AS twice FROM packets", streams)
    known = streams | {"big": pa.schema([("src", pa.string()), ("twice", pa.int32())])}
    second = build_query("bigger", "SELECT src FROM big WHERE twice > 9", known)
    assert first.columns == ("src", "twice")
    assert second.graph.streams == ("big",)


def test_promises_are_kept_in_seconds(streams: dict[str, pa.Schema]) -> None:
    query = build_query("q", "SELECT src FROM packets [RANGE 5 s] WHERE ok PERIOD '1 minute' DEADLINE 250ms", streams)
    assert (query.promises.period, query.promises.deadline) == (60.0, 0.25)
    query = build_query("q", "SELECT src FROM packets [RANGE 5 s] PERIOD 2 s", streams)
    assert query.promises.deadline == 2.0


def test_period_stays_a_name(streams: dict[str, pa.Schema]) -> None:
    known = streams | {"plan": parse_schema("period int, deadline int")}
    query = build_query("q", "SELECT period, deadline FROM plan period WHERE period.period > 10", known)
    assert query.promises.period is None
    assert query.columns == ("period", "deadline")


def test_settings_are_passed_on(streams: dict[str, pa.Schema]) -> None:
    query = build_query(
        "q", "SELECT src FROM packets", streams, promises=Promises(0.5), start="latest", on_error="fail"
    )
    assert (query.promises.weight, query.start, query.on_error) == (0.5, "latest", "fail")


def test_window_that_nothing_is_computed_over_has_no_effect(streams: dict[str, pa.Schema]) -> None:
    query = build_query("q", "SELECT src FROM packets [ROWS 5]", streams)
    assert list(query.graph.operators) == ["q.project"]
    assert ordered(query) == [Project("q.project", (("src", "src"),))]
    assert query.graph.inputs == {"q.project": ("packets",)}


def test_join_holds_all_that_its_run_needs(streams: dict[str, pa.Schema]) -> None:
    text = "SELECT a.value FROM S0 [RANGE 1 s] a LEFT JOIN R0 [NOW] ON a.ID = R0.ID"
    query = build_query("q", text, streams)
    join = query.graph.operators["q.join_1"]
    assert isinstance(join, Join)
    assert (join.kind, join.keys, join.columns) == ("left", (("ID",), ("ID",)), (("value", 0, "value"),))
    assert join.validity == (Lifetime(None, 1_000_000), Lifetime(None, 1))
    assert query.graph.inputs["q.join_1"] == ("q.join_1.left.input", "q.join_1.right.input")


def test_having_alone_needs_a_window_too(streams: dict[str, pa.Schema]) -> None:
    query = build_query("q", "SELECT max(size) AS m FROM packets [ROWS 5] HAVING m > 3", streams)
    calls = (Call("__a1", "max", "size"),)
    assert query.graph.operators["q.aggregate"] == Moving("q.aggregate", None, rows=5, calls=calls)
    assert query.graph.operators["q.aggregate.having_1"] == Filter("q.aggregate.having_1", "__a1 > 3")


def test_union_under_a_filter_is_one_operator(streams: dict[str, pa.Schema]) -> None:
    text = "SELECT n FROM (SELECT size AS n FROM packets UNION ALL SELECT lane FROM Speed) WHERE n > 1"
    graph = build_query("q", text, streams).graph
    [union] = [operator for operator in graph.operators.values() if isinstance(operator, Union)]
    assert [graph.inputs[source] for source in graph.inputs[union.name]] == [("packets",), ("Speed",)]
    assert [type(graph.operators[name]) for name in graph.order[2:]] == [Union, Filter, Project]


def test_name_of_a_stream_is_taken(streams: dict[str, pa.Schema]) -> None:
    with pytest.raises(UserError, match="choose another"):
        build_query("packets", "SELECT src FROM packets", streams)


def test_error_knows_its_place(streams: dict[str, pa.Schema]) -> None:
    with pytest.raises(SqlError) as caught:
        build_query("q", "SELECT src\nFROM packets\nWHERE\tprize > 3", streams)
    assert caught.value.line == 3
    assert str(caught.value).splitlines()[1:] == ["  WHERE\tprize > 3", "       \t^^^^^"]


def test_hidden_column_of_a_log_is_not_selected() -> None:
    schema = pa.schema([("v", pa.int32()), ("__arrival", pa.int64())])
    assert build_query("q", "SELECT * FROM s", {"s": schema}).columns == ("v",)


def test_the_arguments_of_every_function_are_known() -> None:
    from freshet.sql.check.functions import IN_GRAMMAR, functions
    from freshet.sql.check.signatures import signatures

    named = {name for name, kind in functions().items() if kind in ("scalar", "aggregate")} - {*IN_GRAMMAR, "cast"}
    assert signatures().keys() == named
