"""Calls of the user's own functions: checked by their declarations, and macros put into their place."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from sqlglot import exp

from freshet.model.functions import Macro, known_function
from freshet.model.messages import counted
from freshet.model.numbers import INTEGERS, is_number
from freshet.model.schema import type_text
from freshet.sql.check.functions import name_of
from freshet.sql.check.types import ColumnTypes, is_known, type_of
from freshet.sql.parse.errors import fail
from freshet.sql.parse.text import parse_expression
from freshet.sql.parse.trees import call, cast, closed, inline

ELSEWHERE: Final = "elsewhere"
"""Key in the ``meta`` of calls of functions that only Spark knows."""


def explicit_call(node: exp.Expr, columns: ColumnTypes) -> exp.Expr | None:
    """A call of an own function with its arguments cast to the declared types, or its macro; None: it is no such call.

    Raises:
        SqlError: Its arguments are not those that are declared.
    """
    function = known_function(name_of(node))
    if function is None:
        return None
    form = f"{function.name}({', '.join(map(type_text, function.takes))})"
    if len(node.expressions) != len(function.takes):
        raise fail(f"{form} takes {counted(len(function.takes), 'argument')}, not {len(node.expressions)}", node)
    arguments = []
    for argument, wanted in zip(node.expressions, function.takes, strict=True):
        kind = type_of(argument, columns)
        if is_known(kind) and kind != wanted and not _widens(kind, wanted):
            raise fail(f"{form} does not take {type_text(kind)} here: CAST it to {type_text(wanted)}", argument)
        arguments.append(argument if kind == wanted else cast(argument, type_text(wanted)))
    if not isinstance(function, Macro):
        return call(function.key, *arguments)
    return closed(inline(parse_expression(function.body), dict(zip(function.parameters, arguments, strict=True))))


def _widens(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark makes one type the other without a CAST."""
    if kind in INTEGERS and wanted in INTEGERS:
        return INTEGERS.index(kind) <= INTEGERS.index(wanted)
    if pa.types.is_floating(wanted):
        return is_number(kind) and (kind != pa.float64() or wanted == pa.float64())
    if pa.types.is_decimal(wanted):
        return kind in INTEGERS
    return bool(pa.types.is_date(kind) and pa.types.is_timestamp(wanted))
