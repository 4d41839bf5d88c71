"""Functions of numbers whose results are exact, and so equal to Spark's bit by bit.

exp, ln, log10 and pow are left to Spark: their last bit differs between Java and C. So is round to decimals, which
rounds the digits that Java would print.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc
from sqlglot import exp

from freshet.kernels.expressions.arrow import decode
from freshet.kernels.expressions.conversion import convert
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import FunctionRule, Node, Rule, RuleScope, fixed
from freshet.kernels.expressions.rules.arithmetic import negative, operate, turned
from freshet.kernels.expressions.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    DTYPES,
    STRING,
    VOID,
    common_of,
    is_fractional,
    is_integral,
    name,
)
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Value, both, fail_where, total

Merge = Callable[[Value, Value], Value]

_BEYOND_BIGINT: Final = 2.0**63


def _to_bigint(label: str, kernel: Callable[[Any], Any]) -> FunctionRule:
    """Ceil or floor, which give a bigint; NaN gives 0, as a cast in Java would."""

    def function(node: Node) -> Node:
        _check(node, label)
        if is_integral(node.kind):
            return convert(node, BIGINT)
        wide = convert(node, DOUBLE)

        def evaluate(frame: Frame) -> Value:
            value = wide(frame)
            wrong = (value.values >= _BEYOND_BIGINT) | (value.values < -_BEYOND_BIGINT)
            whole = np.where(wrong | np.isnan(value.values), 0.0, kernel(value.values))
            return fail_where(Value(whole.astype(np.int64), value.valid, value.errors), wrong)

        return Node(BIGINT, f"{label}({node.key})", evaluate, (wide,), 4.0)

    return fixed(1, function)


def _round(scope: RuleScope, nodes: Sequence[Node]) -> Node:
    """Half away from zero, to a whole number. A double x.5 is exact, and so is the distance to it."""
    if len(nodes) not in (1, 2) or (len(nodes) == 2 and nodes[1].constant != 0):
        raise Unsupported("round to decimals")
    node = nodes[0]
    _check(node, "round")
    if is_integral(node.kind):
        return node

    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        size = np.abs(value.values)
        whole = np.trunc(size)
        made = np.where(np.isfinite(size), whole + (size - whole >= 0.5), size)
        # A decimal has no negative zero.
        signed = np.where((value.values < 0) & (made != 0), -made, made)
        return Value(signed.astype(value.values.dtype, copy=False), value.valid, value.errors)

    return Node(node.kind, f"round({node.key})", evaluate, (node,), 6.0)


def _of_double(label: str, kernel: Callable[[Any], Any], cost: float) -> FunctionRule:
    def function(node: Node) -> Node:
        _check(node, label)
        wide = convert(node, DOUBLE)

        def evaluate(frame: Frame) -> Value:
            value = wide(frame)
            return Value(kernel(value.values), value.valid, value.errors)

        return Node(DOUBLE, f"{label}({wide.key})", evaluate, (wide,), cost)

    return fixed(1, function)


def _sign(values: Any) -> Any:
    """The sign; a zero keeps its sign, and NaN stays NaN."""
    return np.where(values == 0, values, np.sign(values))


_SQUARE: Final = _of_double("square", lambda values: values * values, 2.0)


def _power(scope: RuleScope, nodes: Sequence[Node]) -> Node:
    """The square: no other power is the same everywhere."""
    if len(nodes) != 2 or nodes[1].constant != 2:
        raise Unsupported("pow with an exponent other than 2")
    return _SQUARE(scope, nodes[:1])


def is_nan(node: Node) -> Node:
    """False for NULL, so never NULL itself."""
    if not is_fractional(node.kind):
        raise Unsupported(f"isnan of {name(node.kind)}")

    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        found = np.isnan(value.values)
        return Value(found if value.valid is None else found & value.valid, None, value.errors)

    return Node(BOOLEAN, f"isnan({node.key})", evaluate, (node,))


def _extreme(label: str) -> FunctionRule:
    """Greatest and least ignore NULL; NaN is the largest, and the first of equal values is kept."""
    largest = label == "greatest"

    def function(scope: RuleScope, nodes: Sequence[Node]) -> Node:
        kind = common_of(node.kind for node in nodes)
        if len(nodes) < 2 or kind == VOID or (kind not in DTYPES and kind != STRING):
            raise Unsupported(f"{label} of {name(kind)}")
        sides = [convert(node, kind) for node in nodes]
        merge = _better_text(largest) if kind == STRING else _better_number(largest, is_fractional(kind))

        def evaluate(frame: Frame) -> Value:
            result = sides[0](frame)
            for side in sides[1:]:
                result = merge(result, side(frame))
            return result

        return Node(kind, f"{label}({','.join(side.key for side in sides)})", evaluate, sides, 4.0 * len(sides))

    return function


def _better_number(largest: bool, fractional: bool) -> Merge:
    def merge(one: Value, two: Value) -> Value:
        a, b = one.values, two.values
        better = b > a if largest else b < a
        if fractional:
            first, second = (a, b) if largest else (b, a)
            better = better | (np.isnan(second) & ~np.isnan(first))
        if two.valid is not None:
            better = better & two.valid
        if one.valid is None:
            return Value(np.where(better, b, a), None, total(one.errors, two.errors))
        better = better | (~one.valid if two.valid is None else ~one.valid & two.valid)
        valid = None if two.valid is None else one.valid | two.valid
        return Value(np.where(better, b, a), valid, total(one.errors, two.errors))

    return merge


def _better_text(largest: bool) -> Merge:
    choose = pc.max_element_wise if largest else pc.min_element_wise

    def merge(one: Value, two: Value) -> Value:
        made = decode(choose(one.values.array, two.values.array, skip_nulls=True))
        return Value(made.values, made.valid, total(one.errors, two.errors), made.array)

    return merge


def whole_quotient(left: Node, right: Node) -> Node:
    """DIV: a bigint, rounded towards zero; division by zero, or of the smallest bigint by -1, is an error."""
    for node in (left, right):
        if not is_integral(node.kind):
            raise Unsupported(f"DIV of {name(node.kind)}")
    one, two = convert(left, BIGINT), convert(right, BIGINT)

    def evaluate(frame: Frame) -> Value:
        a, b = one(frame), two(frame)
        wrong = (b.values == 0) | ((b.values == -1) & (a.values == np.iinfo(np.int64).min))
        divisor = np.where(wrong, 1, b.values)
        below = np.floor_divide(a.values, divisor)
        inexact = (below * divisor != a.values) & (below < 0)
        return fail_where(Value(below + inexact, both(a.valid, b.valid), total(a.errors, b.errors)), wrong)

    return Node(BIGINT, f"({left.key}DIV{right.key})", evaluate, (one, two), 20.0)


def _check(node: Node, label: str) -> None:
    if not is_integral(node.kind) and not is_fractional(node.kind):
        raise Unsupported(f"{label} of {name(node.kind)}")


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.IntDiv: lambda scope, e: whole_quotient(scope.compile(e.this), scope.compile(e.expression)),
}
FUNCTIONS: Final[dict[str, FunctionRule]] = {
    "abs": fixed(1, lambda node: turned("abs", node, np.abs)),
    "negative": fixed(1, negative),
    "ceil": _to_bigint("ceil", np.ceil),
    "ceiling": _to_bigint("ceil", np.ceil),
    "floor": _to_bigint("floor", np.floor),
    "round": _round,
    "sqrt": _of_double("sqrt", np.sqrt, 4.0),
    "sign": _of_double("sign", _sign, 4.0),
    "signum": _of_double("sign", _sign, 4.0),
    "pow": _power,
    "power": _power,
    "mod": fixed(2, lambda left, right: operate("%", left, right)),
    "div": fixed(2, whole_quotient),
    "isnan": fixed(1, is_nan),
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
}
