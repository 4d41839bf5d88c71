"""Checks of expressions before anything runs: functions, their places, plain mistakes of types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import pyarrow as pa
from sqlglot import exp

from freshet.model.errors import UserError
from freshet.model.functions import known_function
from freshet.model.numbers import is_number
from freshet.model.schema import parse_schema, type_text
from freshet.sql.check.estimates import ESTIMATES, estimated
from freshet.sql.check.explicit import make_explicit
from freshet.sql.check.functions import NOT_IN_LOG, UNIT_FUNCTIONS, arrival_form, functions, is_aggregate, name_of
from freshet.sql.check.own import ELSEWHERE
from freshet.sql.check.signatures import signatures
from freshet.sql.check.type_rules import castable, comparable, computable, share_a_column
from freshet.sql.check.types import COMPARISONS, ColumnTypes, alternatives, compared, is_known, is_time, type_of
from freshet.sql.parse.dialect import Suffixed
from freshet.sql.parse.errors import did_you_mean, fail
from freshet.sql.parse.text import to_sql
from freshet.sql.parse.trees import rewritten


def check_functions(tree: exp.Expr, *, aggregates: str | None) -> exp.Expr:
    """Rejects functions that are not allowed here and turns those of the present time into the arrival time.

    The tree, with its columns resolved, is changed. ``aggregates`` says why no aggregate may be here; None: it may.
    """

    def arrived(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Window):
            raise fail("OVER is not for streams: put a window after the stream's name, as in s [ROWS 10]", node)
        if isinstance(node, exp.Placeholder | exp.Parameter):
            raise fail("a query has no parameters: write the value", node)
        name = name_of(node)
        if name is None:
            return None
        arrival = arrival_form(name, len(node.expressions))
        if arrival is None:
            _check_name(node, name)
            if is_aggregate(node):
                _check_aggregate(node, name, aggregates)
        return arrival

    return rewritten(rewritten(tree, arrived), estimated)


def _check_name(node: exp.Expr, name: str) -> None:
    if name in NOT_IN_LOG:
        raise fail(f"{name}() is not for streams: {NOT_IN_LOG[name]}, so the answer would not depend on the log", node)
    if known_function(name) is not None or name in ESTIMATES or ELSEWHERE in node.meta:
        return
    kind = functions().get(name)
    if kind is None:
        hint = did_you_mean(name, functions()) or "; Spark SQL has no function of this name"
        only = exp.Var(this=node.name)
        only.meta.update({key: node.meta[key] for key in ("start", "end") if key in node.meta})
        raise fail(f"unknown function {name}{hint}", only)
    if kind == "window":
        raise fail(f"{name}() ranks rows within OVER, which is not for streams", node)
    if kind == "generator":
        raise fail(f"{name}() makes several rows of one; only functions that give one value are allowed here", node)


def _check_aggregate(node: exp.Expr, name: str, why_not: str | None) -> None:
    if why_not is not None:
        raise fail(f"{name}() is an aggregate: {why_not}", node)
    inside = next((part for part in node.walk() if part is not node and is_aggregate(part)), None)
    if inside is not None:
        raise fail(f"{name_of(inside)}() is inside {name}(): use a sub-query for the inner aggregate", inside)


def checked(tree: exp.Expr, columns: ColumnTypes, *, aggregates: str | None, clause: str | None = None) -> exp.Expr:
    """An expression with resolved columns, checked, with what Spark does by types written out; it is changed.

    It rejects what is surely wrong by its types; what is not known passes. ``aggregates`` says why no aggregate may
    be here (None: it may), ``clause`` whose condition it is (None: it is a value).
    """
    tree = check_functions(tree, aggregates=aggregates)
    if clause is not None:
        _check_boolean(tree, columns, f"{clause} takes a condition")
    for node in tree.walk():
        check = next((check for kinds, check in _CHECKS if isinstance(node, kinds)), None)
        if check is not None:
            check(node, columns)
    return make_explicit(tree, columns)


def _check_boolean(tree: exp.Expr, columns: ColumnTypes, what: str) -> None:
    kind = type_of(tree, columns)
    if is_known(kind) and not pa.types.is_boolean(kind):
        raise fail(f"{what}, but this is {type_text(kind)}: compare it with something", tree)


def _check_logic(node: exp.Connector | exp.Not, columns: ColumnTypes) -> None:
    what = "NOT takes a condition" if isinstance(node, exp.Not) else f"{node.key.upper()} joins conditions"
    for operand in node.iter_expressions():
        _check_boolean(operand, columns, what)


def _check_arithmetic(node: exp.Binary, columns: ColumnTypes) -> None:
    for operand in (node.left, node.right):
        _check_operand(operand, columns)
    left, right = type_of(node.left, columns), type_of(node.right, columns)
    if not computable(type(node), left, right):
        sign, remedy = _SIGNS[type(node)], "CAST one of them"
        if is_time(left) and is_number(right) and isinstance(node, exp.Add | exp.Sub):
            remedy = f"use an interval, as in {sign} INTERVAL 5 SECONDS"
        raise fail(f"{type_text(left)} {sign} {type_text(right)} has no meaning: {remedy}", node)


def _check_negative(node: exp.Neg, columns: ColumnTypes) -> None:
    _check_operand(node.this, columns)
    kind = type_of(node.this, columns)
    if is_time(kind):
        raise fail(f"a minus needs a number, but this is {type_text(kind)}", node.this)


def _check_operand(tree: exp.Expr, columns: ColumnTypes) -> None:
    kind = type_of(tree, columns)
    if pa.types.is_boolean(kind) or pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise fail(f"arithmetic takes numbers, but this is {type_text(kind)}", tree)


def _check_comparison(node: exp.Expr, columns: ColumnTypes) -> None:
    value, *others = compared(node)
    for other in others:
        _check_comparable(node, value, other, columns)


def _check_comparable(node: exp.Expr, value: exp.Expr, other: exp.Expr, columns: ColumnTypes) -> None:
    left, right = type_of(value, columns), type_of(other, columns)
    if not comparable(left, right):
        raise fail(f"{type_text(left)} cannot be compared with {type_text(right)}: CAST one of them", node)


def _check_case(node: exp.Case, columns: ColumnTypes) -> None:
    for branch in node.args["ifs"]:
        if node.this is None:
            _check_boolean(branch.this, columns, "WHEN takes a condition")
        else:
            _check_comparable(branch.this, node.this, branch.this, columns)
    _check_one_column(node, columns, "the branches of a CASE")


def _check_one_column(node: exp.Expr, columns: ColumnTypes, what: str) -> None:
    known = [(value, type_of(value, columns)) for value in alternatives(node) if not isinstance(value, exp.Null)]
    for (_, first), (value, other) in pairwise(known):
        if not share_a_column(first, other):
            types = f"{type_text(other)} after {type_text(first)}"
            raise fail(f"{what} have one type, but this is {types}: CAST one", value)


# What sqlglot writes for Spark instead of these means something else.
_OTHER_TYPES: Final = (exp.DType.TIME, exp.DType.JSON, exp.DType.UUID)


def _check_cast(node: exp.Cast, columns: ColumnTypes) -> None:
    if node.to.this in _OTHER_TYPES:
        raise fail(f"type {node.to.this.value.lower()} is not supported: CAST to string instead", node)
    if node.to.this == exp.DType.DECIMAL:
        try:
            parse_schema(f"x {node.to.sql('spark')}")
        except UserError as error:
            raise fail(str(error).partition("column x has ")[2] or str(error), node) from None
    kind, wanted = type_of(node.this, columns), type_of(node, columns)
    if isinstance(node, Suffixed):
        _check_suffix(node, wanted)
    if not castable(kind, wanted):
        raise fail(f"{type_text(kind)} cannot be CAST to {type_text(wanted)}", node)


def _check_suffix(node: Suffixed, kind: pa.DataType) -> None:
    if not pa.types.is_integer(kind):
        return
    bound = 2 ** (kind.bit_width - 1)
    number, name = to_sql(node), to_sql(node.this)
    if not name.lstrip("-").isdigit() or not -bound <= int(name) < bound:
        raise fail(f"{number} is no {type_text(kind)}: write a whole number from {-bound} to {bound - 1}", node)


def _check_text(node: exp.Binary, columns: ColumnTypes) -> None:
    kind = type_of(node.this, columns)
    if pa.types.is_nested(kind):
        word = node.key.upper().replace("REGEXPLIKE", "RLIKE")
        raise fail(f"{word} takes a text, but this is {type_text(kind)}", node)


def _check_element(node: exp.Bracket, columns: ColumnTypes) -> None:
    kind = type_of(node.this, columns)
    if is_known(kind) and not pa.types.is_nested(kind):
        raise fail(f"[...] takes an element of an array or a map, but this is {type_text(kind)}", node.this)


def _check_field(node: exp.Dot, columns: ColumnTypes) -> None:
    kind, name = type_of(node.this, columns), node.expression.name
    if is_known(kind) and not pa.types.is_nested(kind):
        raise fail(f"only a struct has fields, but this is {type_text(kind)}", node.this)
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        if name.lower() not in map(str.lower, names):
            hint = did_you_mean(name, names) or f" (fields: {', '.join(names)})"
            raise fail(f"unknown field {name}{hint}", node)


def _check_substring(node: exp.Substring, columns: ColumnTypes) -> None:
    # Its own form, SUBSTRING(text FROM 2 FOR 3), keeps it from being parsed as a call.
    given = [node.args.get(key) for key in ("this", "start", "length", "zero_start")]
    _check_arguments("substring", [each for each in given if each is not None], node, columns)


def _check_call(node: exp.Anonymous, columns: ColumnTypes) -> None:
    _check_arguments(str(name_of(node)), node.expressions, node, columns)


def _check_arguments(name: str, arguments: Sequence[exp.Expr], node: exp.Expr, columns: ColumnTypes) -> None:
    known = signatures().get(name)
    if known is None or (name in UNIT_FUNCTIONS and len(arguments) == 3):
        return
    # Named arguments and DISTINCT are left to Spark.
    if any(isinstance(argument, exp.Star | exp.Distinct | exp.Kwarg | exp.PropertyEQ) for argument in arguments):
        return
    if not known.takes(len(arguments)):
        raise fail(f"{name}() takes {known.wanted}, not {len(arguments)}", node)
    for place, argument in enumerate(arguments):
        kind = type_of(argument, columns)
        if known.refuses(place, len(arguments), kind):
            which = ("first", "second", "third")[place]
            raise fail(f"{name}() does not take {type_text(kind)} as its {which} argument: CAST it", argument)
    _check_one_column(node, columns, f"the values of {name}()")


_SIGNS: Final = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div"}
_CHECKS: Final[tuple[tuple[tuple[type[exp.Expr], ...], Callable[..., None]], ...]] = (
    ((exp.And, exp.Or, exp.Not), _check_logic),
    (tuple(_SIGNS), _check_arithmetic),
    ((exp.Neg,), _check_negative),
    (COMPARISONS, _check_comparison),
    ((exp.Case,), _check_case),
    ((exp.Cast,), _check_cast),
    ((exp.Like, exp.ILike, exp.RegexpLike), _check_text),
    ((exp.Bracket,), _check_element),
    ((exp.Dot,), _check_field),
    ((exp.Substring,), _check_substring),
    ((exp.Anonymous,), _check_call),
)
