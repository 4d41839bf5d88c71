"""The parts of an expression that can fail, and the form of each that gives NULL instead.

A part is *attempted*: its safe form has the same value and type, but is NULL where Spark in ANSI mode would raise.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from freshet.sql.functions import CAST_FUNCTIONS, functions, is_aggregate, name_of
from freshet.sql.trees import call, cast


@dataclass(frozen=True, slots=True)
class Attempt:
    """A part that can fail.

    Args:
        value: Its safe form.
        arguments: What must all be there (not NULL) for a failure to be an error.
        fails: When it fails; None: when the safe form is NULL.
    """

    value: exp.Expr
    arguments: tuple[exp.Expr, ...]
    fails: exp.Expr | None = None


def attempt(node: exp.Expr) -> Attempt | None:
    """The attempt of a node whose children are safe already; None if the node itself cannot fail."""
    rule = _RULES.get(type(node))
    if rule is not None:
        return rule(node)
    name = name_of(node)
    return None if name is None else _call(node, name)


def null_if(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    """NULL where the condition is true, else the value, which is computed only then."""
    return call("IF", condition, exp.Null(), value)


def _guarded(fails: exp.Expr, value: exp.Expr, *arguments: exp.Expr) -> Attempt:
    return Attempt(null_if(fails, value), arguments, fails)


def is_null(tree: exp.Expr) -> exp.Expr:
    """Whether a value is NULL."""
    return exp.Is(this=_operand(tree), expression=exp.Null())


def _operand(tree: exp.Expr) -> exp.Expr:
    simple = isinstance(tree, exp.Column | exp.Literal | exp.Anonymous | exp.Paren | exp.Cast | exp.Case)
    return tree.copy() if simple else exp.Paren(this=tree.copy())


def _inner(tree: exp.Expr) -> exp.Expr:
    return tree.this if isinstance(tree, exp.Paren) else tree


def _binary(function: str) -> Callable[[exp.Expr], Attempt | None]:
    def rule(node: exp.Expr) -> Attempt:
        left, right = _inner(node.this), _inner(node.expression)
        return Attempt(call(function, left, right), (left, right))

    return rule


def _interval_sum(node: exp.Expr) -> Attempt | None:
    # INTERVAL 1 DAY 2 HOURS comes as a sum of intervals.
    if isinstance(node.this, exp.Interval) and isinstance(node.expression, exp.Interval):
        return None
    return _binary("TRY_ADD")(node)


def _negative(node: exp.Expr) -> Attempt | None:
    if isinstance(node.this, exp.Literal | exp.Interval):
        return None
    return _tried(node, node.this)


def _tried(value: exp.Expr, *arguments: exp.Expr) -> Attempt:
    """What has no try_ form of its own: an interval times its hash, in the try_ form, is NULL where it raises."""
    nothing = exp.Interval(this=exp.Literal.string("0"), unit=exp.Var(this="SECOND"))
    return _guarded(is_null(call("TRY_MULTIPLY", nothing, call("HASH", value))), value, *map(_inner, arguments))


def _whole_division(left: exp.Expr, right: exp.Expr) -> Attempt:
    # Of decimals it overflows for many pairs, and not only by -1.
    return _tried(exp.IntDiv(this=_operand(left), expression=_operand(right)), left, right)


def _is_zero(tree: exp.Expr) -> exp.Expr:
    return exp.EQ(this=_operand(tree), expression=exp.Literal.number(0))


def _cast(node: exp.Expr) -> Attempt | None:
    if type(node) is not exp.Cast or _is_sure(node):
        return None
    return Attempt(exp.TryCast(this=node.this.copy(), to=node.to.copy(), safe=True), (node.this,))


_RANGES: Final = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}


def _is_sure(node: exp.Cast) -> bool:
    """Whether a cast is of a literal that surely fits, as 5L and DATE '2026-01-31' are."""
    literal, kind = node.this, node.to.this.name
    if isinstance(literal, exp.Neg):
        literal = literal.this
    if not isinstance(literal, exp.Literal):
        return False
    if not literal.is_string:
        fits = kind in _RANGES and literal.name.isdigit() and int(literal.name) < 2 ** _RANGES[kind]
        smallest = kind in _RANGES and node.this is not literal and literal.name == str(2 ** _RANGES[kind])
        return fits or smallest or kind in ("FLOAT", "DOUBLE", "TEXT")
    if kind == "TEXT":
        return True
    try:
        return kind == "DATE" and bool(datetime.date.fromisoformat(literal.name))
    except ValueError:
        return False


def _element(node: exp.Expr) -> Attempt | None:
    index = node.expressions[0]
    if isinstance(index, exp.Literal) and index.is_string:
        return None  # a key of a map or a field of a struct, which gives NULL by itself
    size = call("SIZE", node.this)
    outside = exp.or_(
        exp.LT(this=_operand(index), expression=exp.Literal.number(0)),
        exp.GTE(this=_operand(index), expression=size),
    )
    return Attempt(call("GET", node.this, index), (node.this, index), outside)


def _element_at(outer: exp.Expr, index: exp.Expr) -> Attempt | None:
    if isinstance(index, exp.Literal) and index.is_string:
        return None  # a key of a map, which gives NULL by itself
    size = call("SIZE", outer)
    outside = exp.or_(
        _is_zero(index),
        exp.GT(this=_operand(index), expression=size),
        exp.LT(this=_operand(index), expression=exp.Neg(this=size.copy())),
    )
    # An index of 0 raises even in the try_ form.
    return Attempt(null_if(_is_zero(index), call("TRY_ELEMENT_AT", outer, index)), (outer, index), outside)


def _to_bigint(node: exp.Expr, arguments: tuple[exp.Expr, ...]) -> Attempt | None:
    """CEIL and FLOOR of a float give a bigint and overflow, of other types they do not; to a place all of them may."""
    if len(arguments) != 1:
        return _tried(node, *arguments)
    argument = arguments[0]
    bound = exp.Literal.number("9.223372036854775807E18")
    outside = exp.or_(
        # NaN is above all numbers to Spark, but CEIL takes it.
        exp.and_(exp.GTE(this=_operand(argument), expression=bound), exp.Not(this=call("ISNAN", argument))),
        exp.LT(this=_operand(argument), expression=exp.Neg(this=bound.copy())),
    )
    # TYPEOF is a constant to Spark, so other types pay nothing for the test.
    is_float = exp.In(
        this=call("TYPEOF", argument), expressions=[exp.Literal.string("double"), exp.Literal.string("float")]
    )
    return _guarded(exp.and_(is_float, outside), node, argument)


_TO_A_PLACE: Final = ("round", "bround", "ceil", "ceiling", "floor")


def is_place(node: exp.Expr) -> bool:
    """Whether a node belongs to the number of places to round to: Spark wants a constant, and no try_ form is one."""
    while node.parent is not None:
        if name_of(node.parent) in _TO_A_PLACE and node is not node.parent.expressions[0]:
            return True
        node = node.parent
    return False


def _rounded(node: exp.Expr, arguments: tuple[exp.Expr, ...]) -> Attempt | None:
    """ROUND and BROUND to tens, hundreds and so on overflow; to decimals, the usual case, they do not."""
    return None if isinstance(arguments[-1], exp.Literal) or len(arguments) == 1 else _tried(node, *arguments)


def _call(node: exp.Expr, name: str) -> Attempt | None:
    arguments = tuple(node.expressions)
    if name in CAST_FUNCTIONS and len(arguments) == 1:
        return _cast(cast(arguments[0], name))
    if name in _CALLS:
        return _CALLS[name](arguments, node)
    if f"try_{name}" in functions() and not is_aggregate(node):
        return Attempt(call(f"try_{name}", *arguments), arguments)
    return None


_Arguments = tuple[exp.Expr, ...]
_CALLS: Final[dict[str, Callable[[_Arguments, exp.Expr], Attempt | None]]] = {
    "round": lambda arguments, node: _rounded(node, arguments),
    "bround": lambda arguments, node: _rounded(node, arguments),
    "ceil": lambda arguments, node: _to_bigint(node, arguments),
    "ceiling": lambda arguments, node: _to_bigint(node, arguments),
    "floor": lambda arguments, node: _to_bigint(node, arguments),
    "element_at": lambda arguments, node: _element_at(*arguments),
    "div": lambda arguments, node: _whole_division(*arguments),
    "make_date": lambda arguments, node: Attempt(
        cast(call("TRY_MAKE_TIMESTAMP_NTZ", *arguments, *[exp.Literal.number(0)] * 3), "DATE"), arguments
    ),
}
for _name in ("abs", "negative", "mod", "pmod", "add_months", "timestamp_seconds", "timestamp_millis"):
    _CALLS[_name] = lambda arguments, node: _tried(node, *arguments)
_RULES: Final[dict[type[exp.Expr], Callable[[exp.Expr], Attempt | None]]] = {
    exp.Add: _interval_sum,
    exp.Sub: _binary("TRY_SUBTRACT"),
    exp.Mul: _binary("TRY_MULTIPLY"),
    exp.Div: _binary("TRY_DIVIDE"),
    exp.Mod: _binary("TRY_MOD"),
    exp.IntDiv: lambda node: _whole_division(node.this, node.expression),
    exp.Neg: _negative,
    exp.Cast: _cast,
    exp.Bracket: _element,
}
