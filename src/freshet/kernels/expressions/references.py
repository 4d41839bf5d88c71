"""References to columns, and what only passes a value on."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from freshet.kernels.expressions.node import Node, Rule, Scope
from freshet.kernels.expressions.unsupported import Unsupported


def _column(scope: Scope, expression: exp.Column) -> Node:
    if expression.table or not isinstance(expression.this, exp.Identifier):
        raise Unsupported(f"{expression.sql('spark')}: a field or a qualified name")
    return scope.resolve(expression.name)


def _inner(scope: Scope, expression: exp.Paren | exp.Alias) -> Node:
    return scope.compile(expression.this)


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Column: _column,
    exp.Paren: _inner,
    exp.Alias: _inner,
}
