"""References to columns, and expressions that only pass a value on."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from freshet.kernels.expressions.node import Node, Rule, RuleScope
from freshet.kernels.expressions.unsupported import Unsupported


def _column(scope: RuleScope, expression: exp.Column) -> Node:
    if expression.table or not isinstance(expression.this, exp.Identifier):
        raise Unsupported(f"{expression.sql('spark')}: a field or a qualified name")
    return scope.resolve(expression.name)


def _inner(scope: RuleScope, expression: exp.Paren | exp.Alias) -> Node:
    return scope.compile(expression.this)


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Column: _column,
    exp.Paren: _inner,
    exp.Alias: _inner,
}
