"""The ``value`` of a query: what a tuple is worth, as an expression over the columns that come in."""

from __future__ import annotations

import pyarrow as pa

from freshet.model.errors import UserError
from freshet.model.numbers import is_number
from freshet.model.schema import type_text
from freshet.sql.check.expressions import checked
from freshet.sql.check.types import type_of
from freshet.sql.parse.text import column, parse_expression, to_sql
from freshet.sql.parse.trees import column_names, inline


def value_over(text: str, schema: pa.Schema) -> str | None:
    """A value over the columns of a stream, spelled as they are there; None: the stream lacks one of its columns.

    >>> value_over("Amount * 2", pa.schema([("amount", pa.int32())])), value_over("amount", pa.schema([]))
    ('amount * 2', None)
    >>> value_over("name", pa.schema([("name", pa.string())]))
    Traceback (most recent call last):
    freshet.model.errors.UserError: value: name is string, not a number
    """
    tree = parse_expression(text)
    columns = {field.name.lower(): field for field in schema}
    wanted = column_names(tree)
    if not wanted:
        raise UserError(f"value: {text} is the same for every tuple: use a column")
    if not wanted <= columns.keys():
        return None
    types = {name: field.type for name, field in columns.items()}
    spelled = inline(tree, {name: column(columns[name].name) for name in wanted})
    kind = type_of(spelled, types)
    if not pa.types.is_null(kind) and not is_number(kind):
        raise UserError(f"value: {text} is {type_text(kind)}, not a number")
    return to_sql(checked(spelled, types, aggregates="a value is computed for each tuple"))
