"""The schemas that chains and queries give out, as far as they are known without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from freshet.model.fold import FROM, UNTIL, WINDOW_END, WINDOW_START, Call, Moving, Panes, Side
from freshet.model.lookup import Lookup
from freshet.model.operator import Filter, Project
from freshet.model.query import Path, Query
from freshet.model.schema import ARRIVAL, parse_schema
from freshet.sql.text import shared_expression
from freshet.sql.types import UNKNOWN, aggregate_type, type_of

_TIMESTAMP = pa.timestamp("us", tz="UTC")


def output_schema(operators: Sequence[Filter | Project], schema: pa.Schema) -> pa.Schema:
    """The schema after a chain of operators, without the arrival column; ``pa.null()`` where a type is not known.

    >>> from freshet.model import parse_schema
    >>> output_schema([Project("p", (("w", "v / 2"), ("k", "k")))], parse_schema("k bigint, v int"))
    w: double
    k: int64
    """
    fields = _without_arrival(schema)
    for operator in operators:
        if isinstance(operator, Project):
            fields = _projected(operator, fields)
    return fields


def query_schema(query: Query, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The schema of a query's output, whatever its operators.

    Args:
        query: The query.
        schemas: Schemas of what it reads.

    >>> from freshet.model import parse_schema
    >>> from freshet.sql.build import build_query
    >>> schemas = {"s": parse_schema("k int, v float")}
    >>> query_schema(build_query("q", "SELECT k, avg(v) AS m FROM s [ROWS 5] GROUP BY k", schemas), schemas)
    k: int32
    m: double
    """
    path = query.paths[0]
    return schema_before(len(path.operators), path, query.paths, schemas)


def schema_before(place: int, path: Path, paths: Sequence[Path], schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The schema in front of the operator at a place of a path, one of the paths of a query."""
    schema = _without_arrival(schemas[path.stream])
    for operator in path.operators[:place]:
        if isinstance(operator, Side):
            other = _other_side(operator, paths)
            sides = (schema, schema_before(other[1], other[0], paths, schemas))
            schema = _joined(operator, sides if operator.port == 0 else sides[::-1])
        else:
            schema = _after(operator, schema)
    return schema


def _other_side(side: Side, paths: Sequence[Path]) -> tuple[Path, int]:
    for path in paths:
        for place, operator in enumerate(path.operators):
            if isinstance(operator, Side) and operator.fold == side.fold and operator.port != side.port:
                return path, place
    raise AssertionError(f"{side.fold} has one side only")


def _after(operator: Filter | Project | Lookup | Panes | Moving, schema: pa.Schema) -> pa.Schema:
    match operator:
        case Filter():
            return schema
        case Project():
            return _projected(operator, schema)
        case Lookup():
            read = parse_schema(", ".join(f"`{name}` {kind}" for name, kind in operator.schema), own=True)
            sides = (schema, output_schema(operator.operators, read))
            return pa.schema([(name, _type(column, sides[port])) for name, port, column in operator.columns])
        case Panes():
            time = _type(operator.validity.time, schema)
            bound = time if pa.types.is_timestamp(time) else _TIMESTAMP
            bounds = [(WINDOW_START, bound), (WINDOW_END, bound)]
            return pa.schema([*_fields(operator.keys, schema), *_called(operator.calls, schema), *bounds])
        case Moving():
            return pa.schema([*_fields(operator.carried, schema), *_called(operator.calls, schema)])


def _joined(side: Side, sides: Sequence[pa.Schema]) -> pa.Schema:
    columns = [(name, _type(column, sides[port])) for name, port, column in side.columns]
    return pa.schema([*columns, (FROM, pa.int64()), (UNTIL, pa.int64())])


def _projected(project: Project, schema: pa.Schema) -> pa.Schema:
    types = {field.name.lower(): field.type for field in schema}
    return pa.schema([(name, type_of(shared_expression(text), types)) for name, text in project.columns])


def _fields(names: Sequence[str], schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return [(name, _type(name, schema)) for name in names]


def _called(calls: Sequence[Call], schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return [(call.output, aggregate_type(call.function, _type(call.column, schema))) for call in calls]


def _type(name: str | None, schema: pa.Schema) -> pa.DataType:
    return UNKNOWN if name is None else schema.field(name).type


def _without_arrival(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, field.type) for field in schema if field.name != ARRIVAL])
