"""AND, OR, NOT and IS, with three truth values (TRUE, FALSE, NULL)."""

from __future__ import annotations

from typing import Final

import numpy as np
from sqlglot import exp

from freshet.kernels.expressions.conversion import convert
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import Node, Rule, RuleScope
from freshet.kernels.expressions.types import BOOLEAN, VOID, name
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Mask, Value, total


def boolean(node: Node, place: str) -> Node:
    """The node, which must be a boolean or NULL."""
    if node.kind not in (BOOLEAN, VOID):
        raise Unsupported(f"{place} of {name(node.kind)}")
    return convert(node, BOOLEAN)


def connect(word: str, left: Node, right: Node, lazy: bool = True) -> Node:
    """AND or OR. If ``lazy``, errors of the right side count only where the left does not decide, as in Spark."""
    left, right = boolean(left, word), boolean(right, word)
    decisive = word == "OR"
    join = np.logical_or if decisive else np.logical_and

    def evaluate(frame: Frame) -> Value:
        one, two = left(frame), right(frame)
        if one.valid is None and two.valid is None and two.errors is None:
            return Value(join(one.values, two.values), None, one.errors)
        one_decides, two_decides = _is(one, decisive), _is(two, decisive)
        decided = one_decides | two_decides
        errors = one.errors
        if two.errors is not None:
            errors = total(errors, np.where(one_decides, np.int32(0), two.errors) if lazy else two.errors)
        known = decided | (_known(one) & _known(two))
        return Value(decided if decisive else ~decided, known, errors)

    return Node(BOOLEAN, f"{word}{'' if lazy else '*'}({left.key},{right.key})", evaluate, (left, right))


def negation(node: Node) -> Node:
    """NOT."""
    node = boolean(node, "NOT")

    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        return Value(np.logical_not(value.values), value.valid, value.errors)

    return Node(BOOLEAN, f"NOT({node.key})", evaluate, (node,), 0.3)


def is_null(node: Node) -> Node:
    """IS NULL, which is never NULL itself."""

    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        nulls = np.zeros(frame.rows, np.bool_) if value.valid is None else ~value.valid
        return Value(nulls, None, value.errors)

    return Node(BOOLEAN, f"ISNULL({node.key})", evaluate, (node,), 0.3)


def is_truth(node: Node, wanted: bool) -> Node:
    """IS TRUE or IS FALSE, which are never NULL themselves."""
    node = boolean(node, "IS")

    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        return Value(_is(value, wanted), None, value.errors)

    return Node(BOOLEAN, f"IS{wanted}({node.key})", evaluate, (node,), 0.3)


def _is(value: Value, wanted: bool) -> Mask:
    same: Mask = value.values if wanted else np.logical_not(value.values)
    return same if value.valid is None else same & value.valid


def _known(value: Value) -> Mask | np.bool_:
    return np.True_ if value.valid is None else value.valid


def _is_rule(scope: RuleScope, expression: exp.Is) -> Node:
    node, what = scope.compile(expression.this), expression.expression
    if isinstance(what, exp.Null):
        return is_null(node)
    if isinstance(what, exp.Boolean):
        return is_truth(node, bool(what.this))
    raise Unsupported(f"IS {what.sql('spark')}")


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.And: lambda scope, e: connect("AND", scope.compile(e.this), scope.compile(e.expression)),
    exp.Or: lambda scope, e: connect("OR", scope.compile(e.this), scope.compile(e.expression)),
    exp.Not: lambda scope, e: negation(scope.compile(e.this)),
    exp.Is: _is_rule,
}
