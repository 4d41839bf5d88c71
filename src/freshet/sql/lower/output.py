"""The columns that queries give out, as far as they are known without Spark."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from freshet.model.operators import Call, Columns
from freshet.model.query import Query
from freshet.sql.check.types import UNKNOWN, aggregate_type, type_of
from freshet.sql.parse.text import shared_expression


class SqlTyper:
    """A :class:`~freshet.model.operators.Typer` that goes by the text alone; a type that only Spark knows is
    ``pa.null()``.

    >>> from freshet.model import parse_schema
    >>> SqlTyper().columns("q.project", (("w", "v / 2"), ("k", "k")), parse_schema("k bigint, v int"))
    w: double
    k: int64
    """

    def columns(self, operator: str, columns: Columns, schema: pa.Schema) -> pa.Schema:
        types = {field.name.lower(): field.type for field in schema}
        return pa.schema([(name, type_of(shared_expression(text), types)) for name, text in columns])

    def predicate(self, operator: str, predicate: str, schema: pa.Schema) -> None:
        """Predicates were checked when the query was built."""

    def call(self, call: Call, schema: pa.Schema) -> pa.DataType:
        return aggregate_type(call.function, UNKNOWN if call.column is None else schema.field(call.column).type)


def query_schema(query: Query, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The columns of a query's output.

    >>> from freshet.model import parse_schema
    >>> from freshet.sql.lower.build import build_query
    >>> schemas = {"s": parse_schema("k int, v float")}
    >>> query_schema(build_query("q", "SELECT k, avg(v) AS m FROM s [ROWS 5] GROUP BY k", schemas), schemas)
    k: int32
    m: double
    """
    return query.graph.schemas(schemas, SqlTyper())[query.graph.root]
