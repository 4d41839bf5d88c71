"""The parts of an expression that can fail, and the form of each that gives NULL instead.

A part is *attempted*: its safe form has the same value and type, but is NULL where Spark in ANSI mode would raise.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from freshet.model.functions import known_function
from freshet.sql.check.functions import CAST_FUNCTIONS, functions, is_aggregate, name_of
from freshet.sql.parse.text import with_fields
from freshet.sql.parse.trees import call, cast, closed


@dataclass(frozen=True, slots=True)
class Attempt:
    """A part that can fail.

    Args:
        value: Its safe form.
        arguments: A failure is an error only if none of these is NULL.
        fails: When it fails; None: when the safe form is NULL.
    """

    value: exp.Expr
    arguments: tuple[exp.Expr, ...]
    fails: exp.Expr | None = None


_Trees = Sequence[exp.Expr]
_Rule = Callable[[exp.Expr, _Trees], Attempt | None]
"""From a node and its arguments, or its operands, to its attempt."""


def attempt(node: exp.Expr) -> Attempt | None:
    """The attempt of a node whose children are safe already; None if the node itself cannot fail."""
    name = name_of(node)
    if name is None:
        rule = _OPERATORS.get(type(node))
        return None if rule is None else rule(node, [node.this, node.expression])
    arguments = node.expressions
    if name in CAST_FUNCTIONS and len(arguments) == 1:
        return _cast(cast(arguments[0], name), arguments)
    own = known_function(name)
    if own is not None:
        value, raised = (with_fields(call(own.try_key, *arguments), [name]) for name in ("value", "raised"))
        return Attempt(value, (), exp.Not(this=is_null(raised)))
    if name in _CALLS:
        return _CALLS[name](node, arguments)
    if f"try_{name}" in functions() and not is_aggregate(node):
        return Attempt(call(f"try_{name}", *arguments), tuple(arguments))
    return None


def _null_if(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    """NULL where the condition is true, else the value, which is computed only then."""
    return call("IF", condition, exp.Null(), value)


def _guarded(fails: exp.Expr, value: exp.Expr, *arguments: exp.Expr) -> Attempt:
    return Attempt(_null_if(fails, value), arguments, fails)


def is_null(tree: exp.Expr) -> exp.Expr:
    """Whether a value is NULL."""
    return exp.Is(this=closed(tree), expression=exp.Null())


def _inner(tree: exp.Expr) -> exp.Expr:
    return tree.this if isinstance(tree, exp.Paren) else tree


def _binary(function: str) -> _Rule:
    def rule(node: exp.Expr, operands: _Trees) -> Attempt | None:
        # INTERVAL 1 DAY 2 HOURS comes as a sum of intervals.
        if isinstance(node, exp.Add) and all(isinstance(operand, exp.Interval) for operand in operands):
            return None
        left, right = map(_inner, operands)
        return Attempt(call(function, left, right), (left, right))

    return rule


def _negative(node: exp.Expr, operands: _Trees) -> Attempt | None:
    return None if isinstance(node.this, exp.Literal | exp.Interval) else _tried(node, [node.this])


def _tried(value: exp.Expr, arguments: _Trees) -> Attempt:
    """An attempt without a try_ form of its own: an interval times its hash, in the try_ form, is NULL if it raises."""
    nothing = exp.Interval(this=exp.Literal.string("0"), unit=exp.Var(this="SECOND"))
    return _guarded(is_null(call("TRY_MULTIPLY", nothing, call("HASH", value))), value, *map(_inner, arguments))


def _whole_division(node: exp.Expr, operands: _Trees) -> Attempt:
    # With decimals it overflows for many pairs, not only by -1.
    left, right = operands
    return _tried(exp.IntDiv(this=closed(left), expression=closed(right)), operands)


def _is_zero(tree: exp.Expr) -> exp.Expr:
    return exp.EQ(this=closed(tree), expression=exp.Literal.number(0))


def _cast(node: exp.Expr, operands: _Trees) -> Attempt | None:
    if type(node) is not exp.Cast or _is_sure(node):
        return None
    return Attempt(exp.TryCast(this=node.this.copy(), to=node.to.copy(), safe=True), (node.this,))


_RANGES: Final = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}


def _is_sure(node: exp.Cast) -> bool:
    """Whether a cast surely succeeds because its literal fits, as in 5L and DATE '2026-01-31'."""
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


def _element(node: exp.Expr, arguments: _Trees) -> Attempt | None:
    """``a[i]``, which counts from 0, and ``element_at(a, i)``, which counts from 1, and from the end."""
    outer, index = (node.this, node.expressions[0]) if isinstance(node, exp.Bracket) else arguments
    if isinstance(index, exp.Literal) and index.is_string:
        return None  # a key of a map or a field of a struct, which gives NULL by itself
    size = call("SIZE", outer)
    if isinstance(node, exp.Bracket):
        negative = exp.LT(this=closed(index), expression=exp.Literal.number(0))
        outside = exp.or_(negative, exp.GTE(this=closed(index), expression=size))
        return Attempt(call("GET", outer, index), (outer, index), outside)
    outside = exp.or_(
        _is_zero(index),
        exp.GT(this=closed(index), expression=size),
        exp.LT(this=closed(index), expression=exp.Neg(this=size.copy())),
    )
    # An index of 0 raises even in the try_ form.
    return Attempt(_null_if(_is_zero(index), call("TRY_ELEMENT_AT", outer, index)), (outer, index), outside)


def _to_bigint(node: exp.Expr, arguments: _Trees) -> Attempt | None:
    """CEIL and FLOOR of a float give a bigint and may overflow, of other types they do not; to a place all may."""
    if len(arguments) != 1:
        return _tried(node, arguments)
    argument = arguments[0]
    bound = exp.Literal.number("9.223372036854775807E18")
    outside = exp.or_(
        # NaN is above all numbers to Spark, but CEIL takes it.
        exp.and_(exp.GTE(this=closed(argument), expression=bound), exp.Not(this=call("ISNAN", argument))),
        exp.LT(this=closed(argument), expression=exp.Neg(this=bound.copy())),
    )
    # TYPEOF is a constant to Spark, so other types pay nothing for the test.
    floats = [exp.Literal.string("double"), exp.Literal.string("float")]
    is_float = exp.In(this=call("TYPEOF", argument), expressions=floats)
    return _guarded(exp.and_(is_float, outside), node, argument)


_TO_A_PLACE: Final = ("round", "bround", "ceil", "ceiling", "floor")


def is_place(node: exp.Expr) -> bool:
    """Whether a node belongs to the number of places to round to: Spark wants a constant, and no try_ form is one."""
    while node.parent is not None:
        if name_of(node.parent) in _TO_A_PLACE and node is not node.parent.expressions[0]:
            return True
        node = node.parent
    return False


def _rounded(node: exp.Expr, arguments: _Trees) -> Attempt | None:
    """ROUND and BROUND to tens, hundreds and so on overflow; to decimals, the usual case, they do not."""
    return None if isinstance(arguments[-1], exp.Literal) or len(arguments) == 1 else _tried(node, arguments)


def _date(node: exp.Expr, arguments: _Trees) -> Attempt:
    midnight = [exp.Literal.number(0)] * 3
    return Attempt(cast(call("TRY_MAKE_TIMESTAMP_NTZ", *arguments, *midnight), "DATE"), tuple(arguments))


_CALLS: Final[dict[str, _Rule]] = {
    **dict.fromkeys(("abs", "negative", "mod", "pmod", "add_months", "timestamp_seconds", "timestamp_millis"), _tried),
    **dict.fromkeys(("round", "bround"), _rounded),
    **dict.fromkeys(("ceil", "ceiling", "floor"), _to_bigint),
    "element_at": _element,
    "div": _whole_division,
    "make_date": _date,
}
_OPERATORS: Final[dict[type[exp.Expr], _Rule]] = {
    exp.Add: _binary("TRY_ADD"),
    exp.Sub: _binary("TRY_SUBTRACT"),
    exp.Mul: _binary("TRY_MULTIPLY"),
    exp.Div: _binary("TRY_DIVIDE"),
    exp.Mod: _binary("TRY_MOD"),
    exp.IntDiv: _whole_division,
    exp.Neg: _negative,
    exp.Cast: _cast,
    exp.Bracket: _element,
}
