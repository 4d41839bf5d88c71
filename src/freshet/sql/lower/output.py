"""The columns that queries give out, as far as they are known without Spark."""

from __future__ import annotations

import pyarrow as pa

from freshet.model.operators import Call, Operator
from freshet.sql.check.types import UNKNOWN, aggregate_type, type_of
from freshet.sql.parse.text import shared_expression


class SqlTyper:
    """A :class:`~freshet.model.operators.Typer` that goes by the text alone; a type that only Spark knows is
    ``pa.null()``.

    >>> from freshet.model import Project, parse_schema
    >>> SqlTyper().plain(Project("q.project", (("w", "v / 2"), ("k", "k"))), parse_schema("k bigint, v int"))
    w: double
    k: int64
    """

    def plain(self, operator: Operator, schema: pa.Schema) -> pa.Schema:
        if operator.makes is None:
            return schema
        types = {field.name.lower(): field.type for field in schema}
        return pa.schema([(name, type_of(shared_expression(text), types)) for name, text in operator.makes])

    def call(self, call: Call, schema: pa.Schema) -> pa.DataType:
        return aggregate_type(call.function, UNKNOWN if call.column is None else schema.field(call.column).type)
