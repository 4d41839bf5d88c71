"""Joins with versions of tables against DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import Any, Literal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.kernels.superbox.superbox import Superbox
from freshet.kernels.table_join import CompiledLookup
from freshet.model import ARRIVAL, Filter, Lookup, Project, UserError, parse_schema

TUPLES = parse_schema("k string, j int, v int")
ROWS = parse_schema("k string, j bigint, w int")
READ = (("k", "string"), ("j", "bigint"), ("w", "int"))
TAKEN: tuple[tuple[str, Literal[0, 1], str], ...] = (("v", 0, "v"), ("w", 1, "w"), ("tk", 0, "k"))


@dataclass(frozen=True)
class Content:
    arrival: int
    table: pa.Table
    reads: list[int]
    # Not the table's id: a later one may get it when this is gone, and find this one's index.
    key: int = field(default_factory=count().__next__)

    def read(self) -> pa.Table:
        self.reads.append(self.arrival)
        return self.table


def content(arrival: int, rows: Sequence[tuple[Any, ...]], reads: list[int] | None = None) -> Content:
    return Content(arrival, made(rows, ROWS), [] if reads is None else reads)


def made(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def tuples(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Tuples (k, j, v, arrival)."""
    return made(rows, TUPLES.append(pa.field(ARRIVAL, pa.int64())))


def lookup(
    kind: Literal["inner", "left"] = "inner", keys: Sequence[str] = ("k",), filters: Sequence[str] = ()
) -> Lookup:
    operators: tuple[Filter | Project, ...] = (
        *(Filter(f"q.join_1.on_{place}", text) for place, text in enumerate(filters)),
        Project("q.join_1.table", (("k", "k"), ("j", "j"), ("w", "w"))),
    )
    return Lookup("q.join_1", "names", READ, operators, kind, (tuple(keys), tuple(keys)), TAKEN)


def given_out(operator: Lookup, table: pa.Table, versions: Sequence[Content]) -> list[tuple[Any, ...]]:
    output, _ = CompiledLookup(operator, TUPLES).run(table, versions)
    return [tuple(row.values()) for row in output.to_pylist()]


KEYS = st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([0, 1, None]))
VALUES = st.one_of(st.none(), st.integers(0, 3))
CONTENTS = st.lists(st.lists(st.tuples(KEYS, VALUES), max_size=5), min_size=1, max_size=4)
STREAM = st.lists(st.tuples(KEYS, VALUES, st.integers(0, 45)), max_size=12)


@settings(max_examples=150, deadline=None)
@given(
    stream=STREAM,
    contents=CONTENTS,
    kind=st.sampled_from(["inner", "left"]),
    keys=st.sampled_from([("k",), ("j",), ("k", "j"), ()]),
    filters=st.sampled_from([(), ("w > 1",)]),
)
def test_tuples_meet_the_rows_of_their_version(
    stream: list[Any], contents: list[Any], kind: Literal["inner", "left"], keys: tuple[str, ...], filters: Any
) -> None:
    table = tuples([(*key, v, arrival) for key, v, arrival in sorted(stream, key=lambda each: each[2])])
    versions = [content(10 * place, [(*key, w) for key, w in rows]) for place, rows in enumerate(contents)]
    expected = reference(table, versions, kind, keys, filters)
    assert Counter(given_out(lookup(kind, keys, filters), table, versions)) == expected


def reference(
    table: pa.Table, versions: Sequence[Content], kind: str, keys: Sequence[str], filters: Sequence[str]
) -> Counter[tuple[Any, ...]]:
    till = [*(each.arrival for each in versions[1:]), 1000]
    rows = pa.concat_tables(
        each.table.append_column("since", pa.array([each.arrival] * len(each.table), pa.int64())).append_column(
            "till", pa.array([end] * len(each.table), pa.int64())
        )
        for each, end in zip(versions, till, strict=True)
    )
    on = " AND ".join(
        [f"s.{ARRIVAL} >= since", f"s.{ARRIVAL} < till", *(f"s.{key} = n.{key}" for key in keys), *filters]
    )
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.register("s", table)
        connection.register("n", rows)
        text = f"SELECT v, w, s.k, s.{ARRIVAL} FROM s {'LEFT' if kind == 'left' else ''} JOIN n ON {on}"
        return Counter(connection.execute(text).fetchall())


def test_the_order_is_that_of_the_tuples_and_of_the_rows() -> None:
    version = content(0, [("b", 0, 1), ("a", 0, 2), ("b", 0, 3)])
    table = tuples([("b", 0, 1, 1), ("a", 0, 2, 2), ("c", 0, 3, 3), ("b", 0, 4, 3)])
    assert [row[:2] for row in given_out(lookup("left"), table, [version])] == [
        (1, 1), (1, 3), (2, 2), (3, None), (4, 1), (4, 3),
    ]  # fmt: skip


def test_a_tuple_from_before_all_versions_meets_the_first() -> None:
    versions = [content(10, [("a", 0, 1)]), content(20, [("a", 0, 2)])]
    assert [row[1] for row in given_out(lookup(), tuples([("a", 0, 0, 3), ("a", 0, 0, 20)]), versions)] == [1, 2]


def test_only_versions_that_are_needed_are_read_and_only_once() -> None:
    reads: list[int] = []
    versions = [content(10 * place, [("a", 0, place)], reads) for place in range(5)]
    compiled = CompiledLookup(lookup(), TUPLES)
    for arrival in (15, 19, 42, 43, 45):
        compiled.run(tuples([("a", 0, 0, arrival)]), versions)
    assert reads == [10, 40]


def test_no_tuples_need_no_version() -> None:
    output, errors = CompiledLookup(lookup(), TUPLES).run(tuples([]), [])
    assert (output.num_rows, output.schema.names, errors) == (0, ["v", "w", "tk", ARRIVAL], 0)


def test_numbers_of_different_types_are_compared_as_they_are() -> None:
    rows = parse_schema("price decimal(5,2)")
    project = Project("p", (("price", "price"),))
    operator = Lookup(
        "l", "t", (("price", "decimal(5,2)"),), (project,), "inner", (("v",), ("price",)), (("v", 0, "v"),)
    )
    version = Content(0, made([(Decimal("2.00"),), (Decimal("2.50"),), (None,)], rows), [])
    assert [row[0] for row in given_out(operator, tuples([("a", 0, v, 1) for v in (1, 2, 3)]), [version])] == [2]


def test_nan_meets_nan_and_zero_negative_zero() -> None:
    schema = parse_schema("x double")
    project = Project("p", (("x", "x"),))
    operator = Lookup("l", "t", (("x", "double"),), (project,), "inner", (("x",), ("x",)), (("x", 0, "x"),))
    version = Content(0, made([(float("nan"),), (0.0,)], schema), [])
    table = made([(float("nan"), 1), (-0.0, 1), (1.0, 1)], schema.append(pa.field(ARRIVAL, pa.int64())))
    output, _ = CompiledLookup(operator, schema).run(table, [version])
    assert output.num_rows == 2


def test_an_expression_that_is_not_compiled_is_refused() -> None:
    project = Project("q.join_1.table", (("__c1", "INITCAP(k)"),))
    operator = Lookup("q.join_1", "names", READ, (project,), "inner", (("k",), ("__c1",)), (("v", 0, "v"),))
    with pytest.raises(UserError, match=r"initcap is not compiled.* names"):
        CompiledLookup(operator, TUPLES)


def test_errors_over_the_table_are_counted() -> None:
    project = Project("q.join_1.table", (("k", "k"), ("x", "10 / w")))
    operator = Lookup("q.join_1", "names", READ, (project,), "inner", (("k",), ("k",)), (("x", 1, "x"),))
    output, errors = CompiledLookup(operator, TUPLES).run(tuples([("a", 0, 0, 1)]), [content(0, [("a", 0, 0)])])
    assert (output["x"].to_pylist(), errors) == ([None], 1)


def test_a_chain_with_a_lookup() -> None:
    chain = (Filter("f", "v > 0"), lookup(), Filter("g", "w > 1"), Project("p", (("s", "v + w"),)))
    box = Superbox([chain], TUPLES)
    versions = [content(0, [("a", 0, 1), ("a", 0, 5)])]
    [begun] = box.begin(tuples([("a", 0, 0, 1), ("a", 0, 3, 2), ("b", 0, 3, 2)]))
    piped = begun.finish({}, {"names": versions})
    assert piped.table.to_pylist() == [{"s": 8, ARRIVAL: 2}]
    assert piped.passed == (2, 2, 1, 1)
    assert len(piped.nanos) == 4
