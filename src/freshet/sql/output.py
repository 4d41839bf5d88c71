"""The schema that a chain gives out, as far as it is known without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from freshet.model.operator import Filter, Project
from freshet.model.schema import ARRIVAL
from freshet.sql.text import parse_expression
from freshet.sql.types import type_of


def output_schema(operators: Sequence[Filter | Project], schema: pa.Schema) -> pa.Schema:
    """The schema after a chain of operators, without the arrival column; ``pa.null()`` where a type is not known.

    >>> from freshet.model import parse_schema
    >>> output_schema([Project("p", (("w", "v / 2"), ("k", "k")))], parse_schema("k bigint, v int"))
    w: double
    k: int64
    """
    fields = [(field.name, field.type) for field in schema if field.name != ARRIVAL]
    for operator in operators:
        if isinstance(operator, Project):
            types = {name.lower(): kind for name, kind in fields}
            fields = [(name, type_of(parse_expression(text), types)) for name, text in operator.columns]
    return pa.schema(fields)
