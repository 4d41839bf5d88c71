"""Checks of expressions before anything runs: functions, their places, plain mistakes of types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from sqlglot import exp

from freshet.model.schema import type_text
from freshet.sql.errors import did_you_mean, fail
from freshet.sql.functions import NOT_IN_LOG, arrival_form, functions, is_aggregate, name_of
from freshet.sql.types import is_known, is_number, is_time, type_of

_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)


def check_functions(tree: exp.Expr, *, aggregates: str | None) -> exp.Expr:
    """Rejects functions that cannot stand here and turns those of the present time into the arrival time.

    Args:
        tree: An expression with resolved columns; it is changed.
        aggregates: Why an aggregate may not stand here; None where it may.
    """
    root = exp.Paren(this=tree)
    for node in list(root.walk()):
        _check_shape(node)
        name = name_of(node)
        if name is None:
            continue
        arrival = arrival_form(name, len(node.expressions))
        if arrival is not None:
            node.replace(arrival)
            continue
        _check_name(node, name)
        if is_aggregate(node):
            _check_aggregate(node, name, aggregates)
    inner: exp.Expr = root.this
    inner.pop()
    return inner


def _check_shape(node: exp.Expr) -> None:
    if isinstance(node, exp.Window):
        raise fail("OVER is not for streams: put a window after the stream's name, as in s [ROWS 10]", node)
    if isinstance(node, exp.Placeholder | exp.Parameter):
        raise fail("a query has no parameters: write the value", node)


def _check_name(node: exp.Expr, name: str) -> None:
    if name in NOT_IN_LOG:
        raise fail(f"{name}() is not for streams: {NOT_IN_LOG[name]}, so the answer would not depend on the log", node)
    kind = functions().get(name)
    if kind is None:
        hint = did_you_mean(name, functions()) or "; Spark SQL has no function of this name"
        raise fail(f"unknown function {name}{hint}", _name_only(node))
    if kind == "window":
        raise fail(f"{name}() ranks rows within OVER, which is not for streams", node)
    if kind == "generator":
        raise fail(f"{name}() makes several rows of one; only functions that give one value can stand here", node)


def _name_only(node: exp.Expr) -> exp.Expr:
    named = exp.Var(this=node.name)
    named.meta.update({key: node.meta[key] for key in ("start", "end") if key in node.meta})
    return named


def _check_aggregate(node: exp.Expr, name: str, why_not: str | None) -> None:
    if why_not is not None:
        raise fail(f"{name}() is an aggregate: {why_not}", node)
    inside = next((part for part in node.walk() if part is not node and is_aggregate(part)), None)
    if inside is not None:
        raise fail(f"{name_of(inside)}() stands inside {name}(): use a sub-query for the inner aggregate", inside)


def check_types(tree: exp.Expr, columns: Mapping[str, pa.DataType]) -> None:
    """Rejects what is wrong for sure by its types; what is not known passes."""
    for node in tree.walk():
        if isinstance(node, exp.And | exp.Or):
            _check_boolean(node.left, columns, f"{node.key.upper()} joins conditions")
            _check_boolean(node.right, columns, f"{node.key.upper()} joins conditions")
        elif isinstance(node, exp.Not):
            _check_boolean(node.this, columns, "NOT takes a condition")
        elif isinstance(node, _ARITHMETIC):
            _check_operand(node.left, columns)
            _check_operand(node.right, columns)
        elif isinstance(node, _COMPARISONS):
            _check_comparison(node, columns)


def check_condition(tree: exp.Expr, columns: Mapping[str, pa.DataType], clause: str) -> None:
    """Rejects a WHERE, HAVING or ON that is not a condition."""
    _check_boolean(tree, columns, f"{clause} takes a condition")
    check_types(tree, columns)


def _check_boolean(tree: exp.Expr, columns: Mapping[str, pa.DataType], what: str) -> None:
    kind = type_of(tree, columns)
    if is_known(kind) and not pa.types.is_boolean(kind):
        raise fail(f"{what}, but this is {type_text(kind)}: compare it with something", tree)


def _check_operand(tree: exp.Expr, columns: Mapping[str, pa.DataType]) -> None:
    kind = type_of(tree, columns)
    if pa.types.is_boolean(kind) or pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise fail(f"arithmetic takes numbers, but this is {type_text(kind)}", tree)


def _check_comparison(node: exp.Binary, columns: Mapping[str, pa.DataType]) -> None:
    left, right = type_of(node.left, columns), type_of(node.right, columns)
    for one, two in ((left, right), (right, left)):
        number_and_other = is_number(one) and (is_time(two) or pa.types.is_boolean(two))
        nested_and_simple = pa.types.is_nested(one) and is_known(two) and not pa.types.is_nested(two)
        if number_and_other or nested_and_simple:
            raise fail(f"{type_text(left)} cannot be compared with {type_text(right)}: CAST one of them", node)
