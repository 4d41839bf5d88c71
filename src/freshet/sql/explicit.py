"""Makes explicit what Spark does by types, so that text alone tells all that can happen.

A text compared with a number is cast by Spark, and the cast can fail: written out, it can be made safe and counted
like any other. ``m[k]`` on a map gives NULL for a missing key, where ``a[i]`` on an array is an error.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from freshet.model.numbers import is_number
from freshet.model.schema import type_text
from freshet.sql.calls import AGGREGATES
from freshet.sql.check import ONE_COLUMN
from freshet.sql.functions import name_of
from freshet.sql.types import is_time, type_of

_ROUNDED = ("abs", "negative", "ceil", "ceiling", "floor", "round", "bround")
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)


def make_explicit(tree: exp.Expr, columns: Mapping[str, pa.DataType]) -> exp.Expr:
    """A resolved expression with its implicit casts of texts and its map look-ups written out; it is changed.

    Aggregates of numbers take texts as numbers, too.

    >>> from freshet.sql.text import parse_expression, to_sql
    >>> to_sql(make_explicit(parse_expression("s > 5"), {"s": pa.string()}))
    'CAST(s AS BIGINT) > 5'
    """
    root = exp.Paren(this=tree)
    for node in reversed(list(root.walk())):
        if isinstance(node, _COMPARISONS):
            _cast_texts([node.this, node.expression], columns)
        elif isinstance(node, exp.Mod):
            _name_remainder(node, columns)
        elif isinstance(node, exp.Between):
            _cast_texts([node.this, node.args["low"], node.args["high"]], columns)
        elif isinstance(node, exp.In) and node.expressions:
            _cast_texts([node.this, *node.expressions], columns)
        elif isinstance(node, exp.Case):
            _cast_branches(node, columns)
        elif name_of(node) in ONE_COLUMN:
            _cast_texts(node.expressions[ONE_COLUMN[str(name_of(node))] :], columns)
        elif name_of(node) == "nullif" and len(node.expressions) == 2:
            _compare_nullif(node, columns)
        elif isinstance(node, exp.Neg) or name_of(node) in _ROUNDED:
            _cast_number(node, columns)
        elif AGGREGATES.get(name_of(node) or "", "count") not in ("count", "min", "max"):
            _cast_argument(node, columns)
        elif isinstance(node, exp.Bracket) or name_of(node) == "element_at":
            _look_up(node, columns)
    inner: exp.Expr = root.this
    inner.pop()
    return inner


def _cast_texts(operands: list[exp.Expr], columns: Mapping[str, pa.DataType]) -> None:
    kinds = [type_of(operand, columns) for operand in operands]
    target = _target([kind for kind in kinds if not pa.types.is_string(kind)])
    if target is None:
        return
    for operand, kind in zip(operands, kinds, strict=True):
        if pa.types.is_string(kind):
            operand.replace(exp.Cast(this=operand.copy(), to=exp.DataType.build(target, dialect="spark")))


def _cast_branches(node: exp.Case, columns: Mapping[str, pa.DataType]) -> None:
    branches, default = node.args["ifs"], node.args.get("default")
    _cast_texts([*(branch.args["true"] for branch in branches), *([default] if default else [])], columns)
    if node.this is None:
        return
    values = [branch.this for branch in branches]
    for value in values:
        # The operand meets each value by itself, so only the value is cast here.
        _cast_texts([value, node.this.copy()], columns)
    values = [branch.this for branch in branches]
    if not any(pa.types.is_string(type_of(value, columns)) for value in values):
        _cast_texts([node.this, *(value.copy() for value in values)], columns)


def _compare_nullif(node: exp.Expr, columns: Mapping[str, pa.DataType]) -> None:
    """NULLIF gives its first argument as it is, and compares it cast."""
    first, second = node.expressions
    equal = exp.EQ(this=first.copy(), expression=second.copy())
    _cast_texts([equal.this, equal.expression], columns)
    if equal != exp.EQ(this=first.copy(), expression=second.copy()):
        node.replace(exp.Anonymous(this="IF", expressions=[equal, exp.Null(), first.copy()]))


def _name_remainder(node: exp.Mod, columns: Mapping[str, pa.DataType]) -> None:
    """Of decimals, % raises where the quotient has too many digits, even in its try_ form; MOD() is guarded whole."""
    if pa.types.is_decimal(type_of(node, columns)):
        node.replace(exp.Anonymous(this="MOD", expressions=[node.this.copy(), node.expression.copy()]))


def _cast_number(node: exp.Expr, columns: Mapping[str, pa.DataType]) -> None:
    argument = node.this if isinstance(node, exp.Neg) else node.expressions[0]
    if pa.types.is_string(type_of(argument, columns)):
        argument.replace(exp.Cast(this=argument.copy(), to=exp.DataType.build("DOUBLE")))


def _cast_argument(call: exp.Expr, columns: Mapping[str, pa.DataType]) -> None:
    argument = call.expressions[0] if call.expressions else None
    if argument is not None and pa.types.is_string(type_of(argument, columns)):
        argument.replace(exp.Cast(this=argument.copy(), to=exp.DataType.build("DOUBLE")))


def _target(others: list[pa.DataType]) -> str | None:
    """The type to which Spark in ANSI mode casts a text that meets these types; None where it is not sure."""
    if not others:
        return None
    if all(pa.types.is_integer(kind) for kind in others):
        return "BIGINT"
    if all(is_number(kind) for kind in others):
        return "DOUBLE"
    same = len(set(others)) == 1
    return type_text(others[0]).upper() if same and (is_time(others[0]) or pa.types.is_boolean(others[0])) else None


def _look_up(node: exp.Expr, columns: Mapping[str, pa.DataType]) -> None:
    outer, key = (node.this, node.expressions[0]) if isinstance(node, exp.Bracket) else node.expressions
    if pa.types.is_map(type_of(outer, columns)):
        node.replace(exp.Anonymous(this="TRY_ELEMENT_AT", expressions=[outer.copy(), key.copy()]))
