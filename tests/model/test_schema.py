"""Spark DDL to Arrow and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import Stream, UserError, parse_schema, schema_text
from freshet.model.schema import type_text

SIMPLE = st.sampled_from(
    [
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
        pa.timestamp("us", tz="UTC"),
        pa.timestamp("us"),
        pa.decimal128(12, 3),
    ]
)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
TYPES = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        inner.map(pa.list_),
        st.tuples(SIMPLE, inner).map(lambda pair: pa.map_(*pair)),
        st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(lambda parts: pa.struct(list(parts.items()))),
    ),
    max_leaves=5,
)


@given(st.dictionaries(NAMES, TYPES, min_size=1, max_size=5))
def test_text_and_schema_are_two_ways_to_say_the_same(columns: dict[str, pa.DataType]) -> None:
    schema = pa.schema(list(columns.items()))
    assert parse_schema(schema_text(schema)) == schema


def test_fields_of_a_struct_are_not_columns() -> None:
    assert parse_schema("a struct<b: int, c: array<string>>, d int").names == ["a", "d"]


def test_a_decimal_without_size_is_sparks_default() -> None:
    assert parse_schema("price decimal").field("price").type == pa.decimal128(10, 0)


@pytest.mark.parametrize(
    ("ddl", "problem"),
    [
        ("", "names no column"),
        ("k", "column k has no type"),
        ("k bigint v int", "is not Spark DDL"),
        ("k bigint, K int", "column K appears twice"),
        ("__k int", "that Freshet keeps for itself"),
        ("k interval", "column k has the unknown type"),
    ],
)
def test_what_is_wrong_is_said(ddl: str, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        parse_schema(ddl)


def test_arrow_types_that_spark_does_not_have() -> None:
    with pytest.raises(UserError, match="has no name in Spark"):
        type_text(pa.uint8())


def test_a_time_zone_is_one_that_there_is() -> None:
    with pytest.raises(UserError, match="time_zone 'Europe/Berln' is not known"):
        Stream("s", parse_schema("k int"), time_zone="Europe/Berln")
