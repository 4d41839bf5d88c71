"""IN with a list of literals, and BETWEEN."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from freshet.kernels.expressions.bounds import Bound, bound
from freshet.kernels.expressions.conversion import convert
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import Node, Rule, RuleScope, quiet
from freshet.kernels.expressions.rules.comparisons import check_scale, compare, unknown
from freshet.kernels.expressions.rules.literals import moment
from freshet.kernels.expressions.rules.logic import connect
from freshet.kernels.expressions.types import (
    BOOLEAN,
    DTYPES,
    STRING,
    VOID,
    common_of,
    is_datetime,
    is_decimal,
    is_integral,
    name,
)
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Value
from freshet.kernels.superbox.text_tests import text_test


def among(scope: RuleScope, node: Node, items: Sequence[Node]) -> Node:
    """IN: NULL where the value is not found and the list holds a NULL."""
    if not all(item.is_constant for item in items):
        raise Unsupported("IN with anything but literals")
    items = [_moment(item, node) for item in items]
    known = [item for item in items if not item.is_null]
    key = f"IN({node.key};{','.join(item.key for item in items)})"
    if node.kind == VOID or not known:
        return unknown(key, node)
    found = _found(scope, key, node, known)
    return found if len(known) == len(items) else _only_true(found)


def _only_true(found: Node) -> Node:
    """NULL instead of FALSE: a value that is not found may equal the NULL of the list."""

    def evaluate(frame: Frame) -> Value:
        value = found(frame)
        known = value.values if value.valid is None else value.values & value.valid
        return Value(value.values, known, value.errors)

    return Node(BOOLEAN, f"{found.key}?", evaluate, (found,), 0.3)


def _found(scope: RuleScope, key: str, node: Node, known: Sequence[Node]) -> Node:
    """Whether a value is one of the literals, in their common type."""
    if is_integral(node.kind) and _exact(known):
        return _among_numbers(scope, key, node, _whole(node, known))
    kind = common_of((node.kind, *(item.kind for item in known)))
    if kind == STRING:
        words = pa.array([item.constant for item in known], STRING)
        return text_test(scope, key, node, lambda array: pc.is_in(array, value_set=words))
    if kind not in DTYPES:
        raise Unsupported(f"IN of {name(kind)}")
    constants = [convert(item, kind).constant for item in known]
    return _among_numbers(scope, key, convert(node, kind), np.array(constants, DTYPES[kind]))


def _among_numbers(scope: RuleScope, key: str, node: Node, numbers: np.ndarray[Any, Any]) -> Node:
    sets = scope.sets_of(node)
    slot = sets.add(key, numbers)

    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        return Value(sets.find(frame, value.values, slot), value.valid, value.errors)

    made = Node(BOOLEAN, key, evaluate, (node,), float(len(numbers)))
    sets.nodes.append(made)
    return made


def _exact(known: Sequence[Node]) -> bool:
    return all(is_integral(item.kind) or is_decimal(item.kind) for item in known)


def _whole(node: Node, known: Sequence[Node]) -> np.ndarray[Any, Any]:
    """The literals that an integer column can hold, in its type."""
    for item in known:
        check_scale(item)
    dtype = DTYPES[node.kind]
    bounds = (bound("=", Decimal(item.constant), dtype) for item in known)
    return np.array([item.constant for item in bounds if isinstance(item, Bound)], dtype)


def _moment(item: Node, node: Node) -> Node:
    if is_datetime(node.kind) and item.kind == STRING and item.constant is not None:
        return moment(item.constant, node.kind)
    return item


def between(scope: RuleScope, node: Node, low: Node, high: Node) -> Node:
    """BETWEEN: two comparisons, with the errors of each of its three parts counted once."""
    return connect("AND", compare(scope, ">=", node, low), compare(scope, "<=", quiet(node), high), lazy=False)


def _in_rule(scope: RuleScope, expression: exp.In) -> Node:
    if not expression.expressions:
        raise Unsupported("IN with a query")
    return among(scope, scope.compile(expression.this), [scope.compile(e) for e in expression.expressions])


def _between_rule(scope: RuleScope, expression: exp.Between) -> Node:
    if expression.args.get("symmetric"):
        raise Unsupported("BETWEEN SYMMETRIC")
    parts = (expression.this, expression.args["low"], expression.args["high"])
    return between(scope, *(scope.compile(part) for part in parts))


RULES: Final[dict[type[exp.Expression], Rule]] = {exp.In: _in_rule, exp.Between: _between_rule}
