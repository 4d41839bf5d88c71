"""References to columns, and what only passes a value on."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from freshet.kernels.frame import Frame
from freshet.kernels.node import Node, Rule, Scope
from freshet.kernels.types import BIGINT, TIMESTAMP
from freshet.kernels.unsupported import Unsupported
from freshet.kernels.value import Value


def _column(scope: Scope, expression: exp.Column) -> Node:
    if expression.table or not isinstance(expression.this, exp.Identifier):
        raise Unsupported(f"{expression.sql('spark')}: a field or a qualified name")
    return scope.resolve(expression.name)


def _inner(scope: Scope, expression: exp.Paren | exp.Alias) -> Node:
    return scope.compile(expression.this)


def _anonymous(scope: Scope, expression: exp.Anonymous) -> Node:
    name, arguments = expression.name.lower(), expression.expressions
    if name != "timestamp_micros" or len(arguments) != 1:
        raise Unsupported(f"function {name}")
    node = scope.compile(arguments[0])
    # This is what now() becomes: the arrival of the tuple; anything else is left to Spark.
    if node.column is None or node.kind != BIGINT:
        raise Unsupported("timestamp_micros of anything but a bigint column")

    def relabel(frame: Frame) -> Value:
        value = node(frame)
        return Value(value.values, value.valid)

    return Node(TIMESTAMP, f"timestamp_micros({node.key})", relabel, (node,), 0.0)


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Column: _column,
    exp.Paren: _inner,
    exp.Alias: _inner,
    exp.Anonymous: _anonymous,
}
