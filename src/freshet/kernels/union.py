"""Unions of tables."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from freshet.model.schema import with_arrival


def unite(tables: Sequence[pa.Table], columns: pa.Schema) -> pa.Table:
    """The rows of all tables, with common names and types.

    Casts are exact, except that a bigint becomes the nearest double, as in Spark.

    >>> one = pa.table({"a": pa.array([1], "int32"), "__arrival": [0]})
    >>> two = pa.table({"b": pa.array([1], "int64"), "__arrival": [0]})
    >>> unite([one, two], pa.schema([("a", pa.float64())])).column("a").to_pylist()
    [1.0, 1.0]
    """
    schema = with_arrival(columns)
    return pa.concat_tables([_cast(table, schema) for table in tables])


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        column.cast(field.type, safe=not pa.types.is_floating(field.type))
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)
