"""IN with a list of literals, and BETWEEN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from freshet.kernels.bounds import Bound, bound
from freshet.kernels.comparisons import TEXT_COST, check_scale, compare
from freshet.kernels.conversion import convert
from freshet.kernels.frame import Frame
from freshet.kernels.literals import moment
from freshet.kernels.logic import connect
from freshet.kernels.node import Node, Rule, Scope, quiet
from freshet.kernels.types import (
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
from freshet.kernels.unsupported import Unsupported
from freshet.kernels.value import Mask, Value

_FEW: Final = 6
"""Up to so many literals are compared one after the other, more are looked up."""

Find = Callable[[Any], Mask]


def among(scope: Scope, node: Node, items: Sequence[Node]) -> Node:
    """IN: NULL where nothing is found and the list holds a NULL."""
    if not all(item.is_constant for item in items):
        raise Unsupported("IN with anything but literals")
    items = [_moment(item, node) for item in items]
    known = [item for item in items if not item.is_null]
    key = f"IN({node.key};{','.join(item.key for item in items)})"
    if node.kind == VOID or not known:
        return _unknown(key, node)
    wide, find, cost = _finder(scope, node, known)
    open_ended = len(known) < len(items)

    def evaluate(frame: Frame) -> Value:
        value = wide(frame)
        found = find(value.values)
        if not open_ended:
            return Value(found, value.valid, value.errors)
        return Value(found, found if value.valid is None else found & value.valid, value.errors)

    return Node(BOOLEAN, key, evaluate, (wide,), cost)


def _finder(scope: Scope, node: Node, known: Sequence[Node]) -> tuple[Node, Find, float]:
    """The node in the common type, how to find the literals in it, and at what cost."""
    if is_integral(node.kind) and _exact(known):
        return node, _find_numbers(_whole(node, known)), float(len(known))
    kind = common_of((node.kind, *(item.kind for item in known)))
    if kind == STRING:
        if node.column is not None:
            scope.text_tests[node.column] += 1
        words = pa.array([item.constant for item in known], STRING)
        return node, lambda text: text.among(words), TEXT_COST
    if kind not in DTYPES:
        raise Unsupported(f"IN of {name(kind)}")
    constants = [convert(item, kind).constant for item in known]
    return convert(node, kind), _find_numbers(np.array(constants, DTYPES[kind])), float(len(known))


def _exact(known: Sequence[Node]) -> bool:
    return all(is_integral(item.kind) or is_decimal(item.kind) for item in known)


def _whole(node: Node, known: Sequence[Node]) -> np.ndarray[Any, Any]:
    """The literals that an integer column can hold at all, in its type."""
    for item in known:
        check_scale(item)
    dtype = DTYPES[node.kind]
    bounds = (bound("=", Decimal(item.constant), dtype) for item in known)
    return np.array([item.constant for item in bounds if isinstance(item, Bound)], dtype)


def _find_numbers(numbers: np.ndarray[Any, Any]) -> Find:
    if not 0 < len(numbers) <= _FEW:
        return lambda values: np.isin(values, numbers)
    first, *others = numbers

    def find(values: Any) -> Mask:
        found: Mask = np.equal(values, first)
        for other in others:
            found |= np.equal(values, other)
        return found

    return find


def _unknown(key: str, node: Node) -> Node:
    def evaluate(frame: Frame) -> Value:
        nothing = np.zeros(frame.rows, np.bool_)
        return Value(nothing, nothing, node(frame).errors)

    return Node(BOOLEAN, key, evaluate, (node,))


def _moment(item: Node, node: Node) -> Node:
    if is_datetime(node.kind) and item.kind == STRING and item.constant is not None:
        return moment(item.constant, node.kind)
    return item


def between(scope: Scope, node: Node, low: Node, high: Node) -> Node:
    """BETWEEN: two comparisons, with the errors of each of its three parts counted once."""
    return connect("AND", compare(scope, ">=", node, low), compare(scope, "<=", quiet(node), high), lazy=False)


def _in_rule(scope: Scope, expression: exp.In) -> Node:
    if not expression.expressions:
        raise Unsupported("IN with a query")
    return among(scope, scope.compile(expression.this), [scope.compile(e) for e in expression.expressions])


def _between_rule(scope: Scope, expression: exp.Between) -> Node:
    if expression.args.get("symmetric"):
        raise Unsupported("BETWEEN SYMMETRIC")
    parts = (expression.this, expression.args["low"], expression.args["high"])
    return between(scope, *(scope.compile(part) for part in parts))


RULES: Final[dict[type[exp.Expression], Rule]] = {exp.In: _in_rule, exp.Between: _between_rule}
