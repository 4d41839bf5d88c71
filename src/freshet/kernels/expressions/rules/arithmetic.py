"""+ - * / % and unary minus; an overflow or a division by zero gives NULL and one error, as in Spark's ``try_add``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from freshet.kernels.expressions.conversion import convert
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import Evaluate, Node, Rule, RuleScope
from freshet.kernels.expressions.overflow import add, multiply, subtract
from freshet.kernels.expressions.rules.intervals import INTERVAL, shifted
from freshet.kernels.expressions.rules.literals import cast_literal, number
from freshet.kernels.expressions.types import (
    DOUBLE,
    DTYPES,
    VOID,
    is_decimal,
    is_integral,
    is_numeric,
    name,
    promoted,
)
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Mask, Value, both, fail_where, total

Kernel = Callable[[Any, Any], tuple[Any, Mask | None]]
"""Returns the results, and the rows where they are wrong (None: nowhere)."""


def _plain(function: Callable[[Any, Any], Any]) -> Kernel:
    return lambda a, b: (function(a, b), None)


def _divide(a: Any, b: Any) -> tuple[Any, Mask | None]:
    return np.divide(a, b), None if b.ndim == 0 and b != 0 else np.equal(b, 0)


def _remainder(a: Any, b: Any) -> tuple[Any, Mask | None]:
    """The remainder has the sign of the dividend, as in Java and in C."""
    return np.fmod(a, b), None if b.ndim == 0 and b != 0 else np.equal(b, 0)


_INTEGRAL: Final[dict[str, Kernel]] = {"+": add, "-": subtract, "*": multiply, "%": _remainder}
_FRACTIONAL: Final[dict[str, Kernel]] = {
    "+": _plain(np.add), "-": _plain(np.subtract), "*": _plain(np.multiply), "/": _divide, "%": _remainder,
}  # fmt: skip
_COSTS: Final = {"+": 3.0, "-": 3.0, "*": 4.0, "/": 4.0, "%": 15.0}


def operate(sign: str, left: Node, right: Node) -> Node:
    """A binary operation in the common type of its sides; ``/`` is always a double."""
    if INTERVAL in (left.kind, right.kind) and sign in ("+", "-"):
        return shifted(sign, left, right)
    kind = _result(sign, left.kind, right.kind)
    left, right = convert(left, kind), convert(right, kind)
    kernel = _INTEGRAL[sign] if is_integral(kind) else _FRACTIONAL[sign]
    one = left if right.is_constant else _operand(left, kind)
    two = _operand(right, kind)

    def evaluate(frame: Frame) -> Value:
        a, b = one(frame), two(frame)
        values, wrong = kernel(a.values, b.values)
        value = Value(values, both(a.valid, b.valid), total(a.errors, b.errors))
        if wrong is None:
            return value
        return fail_where(value, wrong if wrong.shape == values.shape else np.broadcast_to(wrong, values.shape))

    return Node(kind, f"({left.key}{sign}{right.key})", evaluate, (left, right), _COSTS[sign])


def turned(label: str, node: Node, function: Callable[[Any], Any]) -> Node:
    """Unary minus or ``abs``, which fail for the smallest integer: it has no opposite."""
    if not is_numeric(node.kind) or is_decimal(node.kind):
        raise Unsupported(f"{label} of {name(node.kind)}")
    smallest = np.iinfo(DTYPES[node.kind].name).min if is_integral(node.kind) else None

    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        made = Value(function(value.values), value.valid, value.errors)
        return made if smallest is None else fail_where(made, value.values == smallest)

    return Node(node.kind, f"{label}({node.key})", evaluate, (node,))


def negative(node: Node) -> Node:
    """Unary minus."""
    return turned("-", node, np.negative)


def _result(sign: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    for kind in (left, right):
        if not is_numeric(kind) and kind != VOID:
            raise Unsupported(f"{sign} of {name(kind)}")
    if left == VOID and right == VOID:
        return DOUBLE
    kind = promoted(left, right)
    if is_decimal(kind):
        raise Unsupported(f"{sign} of decimals")
    return DOUBLE if sign == "/" else kind


def _operand(node: Node, kind: pa.DataType) -> Evaluate:
    """A literal stays one number instead of filling a column."""
    if not node.is_constant or node.is_null:
        return node
    value = Value(DTYPES[kind].type(node.constant))
    return lambda frame: value


def _negative_rule(scope: RuleScope, expression: exp.Neg) -> Node:
    inner = expression.this
    # The sign belongs to the literal: -2147483648 is an INT although 2147483648 is none.
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return number(f"-{inner.this}")
    if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal):
        return cast_literal(inner, "-")
    return negative(scope.compile(inner))


def _rule(sign: str) -> Rule:
    return lambda scope, e: operate(sign, scope.compile(e.this), scope.compile(e.expression))


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Add: _rule("+"),
    exp.Sub: _rule("-"),
    exp.Mul: _rule("*"),
    exp.Div: _rule("/"),
    exp.Mod: _rule("%"),
    exp.Neg: _negative_rule,
}
