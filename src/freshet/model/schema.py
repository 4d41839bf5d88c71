"""Schemas: Spark DDL text to Arrow, without Spark."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import sqlglot
from sqlglot import exp

from freshet.model.errors import UserError

ARRIVAL: Final = "__arrival"
"""Hidden last column of every segment: when the tuple arrived, in microseconds since the epoch (int64).

An output tuple carries the arrival of the tuple it was made from, so response time is end to end
and ``now()`` has one value per tuple, whatever the schedule.
"""

_SIMPLE: Final[dict[exp.DType, pa.DataType]] = {
    exp.DataType.Type.BOOLEAN: pa.bool_(),
    exp.DataType.Type.TINYINT: pa.int8(),
    exp.DataType.Type.SMALLINT: pa.int16(),
    exp.DataType.Type.INT: pa.int32(),
    exp.DataType.Type.BIGINT: pa.int64(),
    exp.DataType.Type.FLOAT: pa.float32(),
    exp.DataType.Type.DOUBLE: pa.float64(),
    exp.DataType.Type.TEXT: pa.string(),
    exp.DataType.Type.BINARY: pa.binary(),
    exp.DataType.Type.DATE: pa.date32(),
    exp.DataType.Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    exp.DataType.Type.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    exp.DataType.Type.TIMESTAMPLTZ: pa.timestamp("us", tz="UTC"),
    exp.DataType.Type.TIMESTAMPNTZ: pa.timestamp("us"),
}


def parse_schema(ddl: str, *, own: bool = False) -> pa.Schema:
    """The Arrow schema of a Spark DDL text; names that Freshet keeps for itself are allowed in its ``own``.

    >>> parse_schema("k bigint, v double, ts timestamp").names
    ['k', 'v', 'ts']
    >>> parse_schema("k biggint")
    Traceback (most recent call last):
    freshet.model.errors.UserError: schema 'k biggint' is not Spark DDL (name type, name type, ...) at 'biggint'
    """
    try:
        table = sqlglot.parse_one(f"CREATE TABLE t ({ddl})", dialect="spark")
    except sqlglot.ParseError as error:
        place = error.errors[0].get("highlight") or "its end"
        raise UserError(f"schema {ddl!r} is not Spark DDL (name type, name type, ...) at {place!r}") from None
    # Only the outermost: the fields of a struct are column definitions too.
    columns = table.this.expressions
    if not columns:
        raise UserError(f"schema {ddl!r} names no column")
    fields: list[pa.Field] = []
    for column in columns:
        name = column.name
        if name.startswith("__") and not own:
            raise UserError(
                f"schema {ddl!r}: column {name} begins with two underscores, which Freshet keeps for itself"
            )
        if any(field.name.lower() == name.lower() for field in fields):
            raise UserError(f"schema {ddl!r}: column {name} stands twice")
        if not isinstance(column, exp.ColumnDef) or column.args.get("kind") is None:
            raise UserError(f"schema {ddl!r}: column {name} has no type")
        fields.append(pa.field(name, _arrow_type(column.args["kind"], ddl, name)))
    return pa.schema(fields)


def _arrow_type(kind: exp.DataType, ddl: str, column: str) -> pa.DataType:
    simple = _SIMPLE.get(kind.this)
    if simple is not None:
        return simple
    if kind.this == exp.DataType.Type.DECIMAL:
        sizes = [int(size.name) for size in kind.expressions]
        return pa.decimal128(*(sizes or [10, 0]))
    if kind.this == exp.DataType.Type.ARRAY and kind.expressions:
        return pa.list_(_arrow_type(kind.expressions[0], ddl, column))
    if kind.this == exp.DataType.Type.MAP and len(kind.expressions) == 2:
        key, value = kind.expressions
        return pa.map_(_arrow_type(key, ddl, column), _arrow_type(value, ddl, column))
    if kind.this == exp.DataType.Type.STRUCT and kind.expressions:
        return pa.struct(
            [pa.field(part.name, _arrow_type(part.args["kind"], ddl, column)) for part in kind.expressions]
        )
    raise UserError(f"schema {ddl!r}: column {column} has the unknown type {kind.sql('spark')}")


_TEXT: Final = {
    pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint",
    pa.float32(): "float", pa.float64(): "double", pa.string(): "string", pa.binary(): "binary",
    pa.date32(): "date", pa.timestamp("us", tz="UTC"): "timestamp", pa.timestamp("us"): "timestamp_ntz",
}  # fmt: skip


def type_text(kind: pa.DataType) -> str:
    """Spark's name of an Arrow type.

    >>> type_text(pa.list_(pa.int32()))
    'array<int>'
    """
    if kind in _TEXT:
        return _TEXT[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{type_text(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_text(kind.key_type)},{type_text(kind.item_type)}>"
    if pa.types.is_struct(kind):
        parts = (f"{field.name}:{type_text(field.type)}" for field in kind)
        return f"struct<{','.join(parts)}>"
    raise UserError(f"Arrow type {kind} has no name in Spark")


def schema_text(schema: pa.Schema) -> str:
    """Spark DDL text of an Arrow schema; the reverse of :func:`parse_schema`.

    >>> schema_text(parse_schema("k BIGINT, price DECIMAL(10, 2)"))
    '`k` bigint, `price` decimal(10,2)'
    """
    return ", ".join(f"`{field.name}` {type_text(field.type)}" for field in schema)


def with_arrival(columns: pa.Schema) -> pa.Schema:
    """The columns of a stream as they stand in its segments."""
    return columns if ARRIVAL in columns.names else columns.append(pa.field(ARRIVAL, pa.int64()))
