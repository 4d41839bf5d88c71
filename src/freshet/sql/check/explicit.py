"""Writes out what Spark does by types, so that the text alone tells all that can happen.

A text compared with a number is cast by Spark, and the cast can fail: written out, it can be made safe and counted
like any other. ``m[k]`` on a map gives NULL for a missing key, whereas ``a[i]`` on an array is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from freshet.model.numbers import is_number
from freshet.model.schema import type_text
from freshet.sql.check.functions import name_of
from freshet.sql.check.own import explicit_call
from freshet.sql.check.types import ColumnTypes, alternatives, compared, is_time, type_of
from freshet.sql.lower.calls import AGGREGATES
from freshet.sql.parse.trees import call, cast, rewritten

_ROUNDED = ("abs", "negative", "ceil", "ceiling", "floor", "round", "bround")


def make_explicit(tree: exp.Expr, columns: ColumnTypes) -> exp.Expr:
    """A resolved expression with its implicit casts of texts and its map look-ups written out; it is changed.

    Aggregates of numbers take texts as numbers, too.

    >>> from freshet.sql.parse.text import parse_expression, to_sql
    >>> to_sql(make_explicit(parse_expression("s > 5"), {"s": pa.string()}))
    'CAST(s AS BIGINT) > 5'
    """
    return rewritten(tree, lambda node: _explicit(node, columns), children_first=True)


def _explicit(node: exp.Expr, columns: ColumnTypes) -> exp.Expr | None:
    """What comes into the place of a node; None: the node stays, and its operands may have become casts."""
    _cast_texts(compared(node) or alternatives(node), columns)
    name = name_of(node) or ""
    if isinstance(node, exp.Case) and node.this is not None:
        _cast_values(node, columns)
    elif isinstance(node, exp.Neg):
        _cast_to_double(node.this, columns)
    elif name in _ROUNDED or AGGREGATES.get(name, "count") not in ("count", "min", "max"):
        for argument in node.expressions[:1]:
            _cast_to_double(argument, columns)
    elif name == "nullif" and len(node.expressions) == 2:
        first, second = node.expressions
        return _compared_nullif(first, second, columns)
    elif isinstance(node, exp.Mod) and pa.types.is_decimal(type_of(node, columns)):
        # % raises where the quotient has too many digits, even in its try_ form; MOD() is guarded whole.
        return call("MOD", node.this, node.expression)
    elif name.startswith("__"):
        return explicit_call(node, columns)
    elif isinstance(node, exp.Bracket) or name == "element_at":
        outer, key = (node.this, node.expressions[0]) if isinstance(node, exp.Bracket) else node.expressions
        return call("TRY_ELEMENT_AT", outer, key) if pa.types.is_map(type_of(outer, columns)) else None
    return None


def _cast_texts(operands: Sequence[exp.Expr], columns: ColumnTypes) -> None:
    kinds = [type_of(operand, columns) for operand in operands]
    target = _target([kind for kind in kinds if not pa.types.is_string(kind)])
    if target is None:
        return
    for operand, kind in zip(operands, kinds, strict=True):
        if pa.types.is_string(kind):
            operand.replace(cast(operand, target))


def _cast_values(node: exp.Case, columns: ColumnTypes) -> None:
    branches = node.args["ifs"]
    for branch in branches:
        # The operand meets each value by itself, so only the value is cast here.
        _cast_texts([branch.this, node.this.copy()], columns)
    values = [branch.this.copy() for branch in branches]
    if not any(pa.types.is_string(type_of(value, columns)) for value in values):
        _cast_texts([node.this, *values], columns)


def _cast_to_double(argument: exp.Expr, columns: ColumnTypes) -> None:
    if pa.types.is_string(type_of(argument, columns)):
        argument.replace(cast(argument, "DOUBLE"))


def _compared_nullif(first: exp.Expr, second: exp.Expr, columns: ColumnTypes) -> exp.Expr | None:
    """NULLIF gives its first argument as it is, and compares it cast."""
    plain = exp.EQ(this=first.copy(), expression=second.copy())
    equal = plain.copy()
    _cast_texts([equal.this, equal.expression], columns)
    return None if equal == plain else call("IF", equal, exp.Null(), first)


def _target(others: list[pa.DataType]) -> str | None:
    """The type to which Spark in ANSI mode casts a text that meets these types; None: it is not certain."""
    if not others:
        return None
    if all(pa.types.is_integer(kind) for kind in others):
        return "BIGINT"
    if all(is_number(kind) for kind in others):
        return "DOUBLE"
    same = len(set(others)) == 1
    return type_text(others[0]).upper() if same and (is_time(others[0]) or pa.types.is_boolean(others[0])) else None
