"""= <> < <= > >= and <=>: NaN equals NaN and is larger than any other number, -0.0 equals 0.0."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from freshet.kernels.expressions.bounds import Bound, bound, is_bigint
from freshet.kernels.expressions.conversion import convert
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import Node, Rule, RuleScope, literal, reuse
from freshet.kernels.expressions.rules.literals import moment
from freshet.kernels.expressions.text import COMPARE
from freshet.kernels.expressions.types import (
    BOOLEAN,
    DTYPES,
    STRING,
    VOID,
    is_datetime,
    is_decimal,
    is_fractional,
    is_integral,
    name,
    promoted,
)
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Mask, Value, both, total
from freshet.kernels.superbox.text_tests import TEXT_COST, text_test

Comparison = Callable[[Any, Any], Mask]
Floats = npt.NDArray[np.float64]

_FLIPPED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PLAIN: Final[dict[str, Comparison]] = {
    "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


def compare(scope: RuleScope, sign: str, left: Node, right: Node) -> Node:
    """The comparison of two nodes, after the implicit casts that Spark makes."""
    if left.kind == VOID or right.kind == VOID:
        return unknown(f"({left.key}{sign}{right.key})", left, right)
    if left.is_constant and not right.is_constant:
        return compare(scope, _FLIPPED[sign], right, left)
    left, right = _dates(left, right)
    if _is_exact(left) and _is_exact(right) and right.is_constant:
        return _compare_exact(sign, left, right)
    kind = promoted(left.kind, right.kind)
    left, right = convert(left, kind), convert(right, kind)
    if kind == STRING:
        return _compare_text(scope, sign, left, right)
    if kind not in DTYPES:
        raise Unsupported(f"{sign} of {name(kind)}")
    if right.is_constant and not left.is_constant:
        return _compare_constant(sign, left, right)
    return _compare_columns(sign, left, right)


def same(scope: RuleScope, left: Node, right: Node) -> Node:
    """<=>: equal, or both NULL."""
    if left.is_null or right.is_null:
        return _both_null(left, right)
    equal = compare(scope, "=", reuse(left), reuse(right))

    def evaluate(frame: Frame) -> Value:
        value = equal(frame)
        if value.valid is None:
            return value
        one, two = left(frame).valid, right(frame).valid
        known = value.values & value.valid
        if one is not None and two is not None:
            known |= ~(one | two)
        return Value(known, None, value.errors)

    return Node(BOOLEAN, f"SAME({left.key},{right.key})", evaluate, (equal,))


def _both_null(left: Node, right: Node) -> Node:
    def evaluate(frame: Frame) -> Value:
        one, two = left(frame), right(frame)
        nulls = [np.zeros(frame.rows, np.bool_) if v.valid is None else ~v.valid for v in (one, two)]
        return Value(nulls[0] & nulls[1], None, total(one.errors, two.errors))

    return Node(BOOLEAN, f"SAME({left.key},{right.key})", evaluate, (left, right))


def unknown(key: str, *parts: Node) -> Node:
    """A test that is always NULL; its parts are still evaluated, for their errors."""

    def evaluate(frame: Frame) -> Value:
        nothing = np.zeros(frame.rows, np.bool_)
        return Value(nothing, nothing, reduce(total, [part(frame).errors for part in parts]))

    return Node(BOOLEAN, key, evaluate, parts)


def _dates(left: Node, right: Node) -> tuple[Node, Node]:
    """A literal string beside a date or timestamp becomes a date or timestamp."""
    if is_datetime(left.kind) and right.kind == STRING and right.is_constant:
        return left, moment(right.constant, left.kind)
    if is_datetime(right.kind) and left.kind == STRING and left.is_constant:
        return moment(left.constant, right.kind), right
    return left, right


def _is_exact(node: Node) -> bool:
    return is_integral(node.kind) or (is_decimal(node.kind) and node.is_constant)


def _compare_exact(sign: str, left: Node, right: Node) -> Node:
    """An integer with a literal integer or decimal, without widening the column."""
    if left.is_constant:
        one, two = Decimal(left.constant), Decimal(right.constant)
        return literal(BOOLEAN, bool(_PLAIN[sign](one, two)))
    check_scale(right)
    limit = bound(sign, Decimal(right.constant), DTYPES[left.kind])
    if not isinstance(limit, bool):
        evaluate = _bounded(left, limit)
    else:
        # Spark replaces an ordering beyond the range of bigint by TRUE or FALSE, for NULL as well.
        evaluate = _everywhere(left, limit, null_too=sign not in ("=", "<>") and not is_bigint(right.constant))
    return Node(BOOLEAN, f"({left.key}{sign}{right.key})", evaluate, (left,))


def check_scale(node: Node) -> None:
    """A decimal with too many decimals would lose some beside a bigint, whose digits take 20 of the 38."""
    if is_decimal(node.kind) and node.kind.scale > 18:
        raise Unsupported("a decimal of more than 18 decimals beside an integer")


def _everywhere(node: Node, answer: bool, null_too: bool) -> Callable[[Frame], Value]:
    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        return Value(np.full(frame.rows, answer), None if null_too else value.valid, value.errors)

    return evaluate


def _bounded(node: Node, limit: Bound) -> Callable[[Frame], Value]:
    test, constant = _PLAIN[limit.sign], limit.constant

    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        return Value(test(value.values, constant), value.valid, value.errors)

    return evaluate


def _compare_text(scope: RuleScope, sign: str, left: Node, right: Node) -> Node:
    key = f"({left.key}{sign}{right.key})"
    if not right.is_constant or left.is_constant:
        return Node(
            BOOLEAN, key, _pairwise(left, right, lambda a, b: a.compare_text(sign, b)), (left, right), TEXT_COST
        )
    word = right.constant
    if sign != "=":
        function = COMPARE[sign]
        return text_test(scope, key, left, lambda words: function(words, word))
    if left.column is not None:
        scope.text_tests[left.column] += 1

    def evaluate(frame: Frame) -> Value:
        value = left(frame)
        return Value(value.values.equal(word), value.valid, value.errors)

    made = Node(BOOLEAN, key, evaluate, (left,), TEXT_COST)
    if left.column is not None:
        scope.tests_of(left.column).nodes.append(made)
    return made


def _compare_constant(sign: str, left: Node, right: Node) -> Node:
    test = _above_constant(sign) if is_fractional(left.kind) else _PLAIN[sign]
    constant = right.constant

    def evaluate(frame: Frame) -> Value:
        value = left(frame)
        return Value(test(value.values, constant), value.valid, value.errors)

    return Node(BOOLEAN, f"({left.key}{sign}{right.key})", evaluate, (left,))


def _above_constant(sign: str) -> Comparison:
    """NaN is above every literal, but to NumPy every comparison with NaN is false: ask for the opposite."""
    opposite = {">": np.less_equal, ">=": np.less}.get(sign)
    if opposite is None:
        return _PLAIN[sign]

    def test(values: Any, constant: Any) -> Mask:
        below: Mask = opposite(values, constant)
        return np.logical_not(below, below)

    return test


def _compare_columns(sign: str, left: Node, right: Node) -> Node:
    test = _nan_aware(sign) if is_fractional(left.kind) else _PLAIN[sign]
    return Node(BOOLEAN, f"({left.key}{sign}{right.key})", _pairwise(left, right, test), (left, right))


def _pairwise(left: Node, right: Node, test: Comparison) -> Callable[[Frame], Value]:
    def evaluate(frame: Frame) -> Value:
        one, two = left(frame), right(frame)
        return Value(test(one.values, two.values), both(one.valid, two.valid), total(one.errors, two.errors))

    return evaluate


def _nan_aware(sign: str) -> Comparison:
    def equal(a: Floats, b: Floats) -> Mask:
        return np.equal(a, b) | (np.isnan(a) & np.isnan(b))

    def less(a: Floats, b: Floats) -> Mask:
        return np.less(a, b) | (np.isnan(b) & ~np.isnan(a))

    tests: dict[str, Comparison] = {
        "=": equal,
        "<>": lambda a, b: ~equal(a, b),
        "<": less,
        ">=": lambda a, b: ~less(a, b),
        ">": lambda a, b: less(b, a),
        "<=": lambda a, b: ~less(b, a),
    }
    return tests[sign]


def _side(scope: RuleScope, expression: exp.Expression) -> Node:
    # Spark reads `a = b IS NULL` as `(a = b) IS NULL` and `a = b < c` as `(a = b) < c`; sqlglot does not.
    if isinstance(expression, exp.Is | exp.In | exp.Between | exp.Not | exp.Predicate):
        raise Unsupported("a comparison of a comparison without parentheses")
    return scope.compile(expression)


def _rule(sign: str) -> Rule:
    return lambda scope, e: compare(scope, sign, _side(scope, e.this), _side(scope, e.expression))


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.EQ: _rule("="),
    exp.NEQ: _rule("<>"),
    exp.LT: _rule("<"),
    exp.LTE: _rule("<="),
    exp.GT: _rule(">"),
    exp.GTE: _rule(">="),
    exp.NullSafeEQ: lambda scope, e: same(scope, _side(scope, e.this), _side(scope, e.expression)),
}
