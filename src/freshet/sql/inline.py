"""Puts expressions in the place of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from freshet.sql.errors import SqlError
from freshet.sql.limits import MOST_PARTS, TOO_MANY_PARTS, parts_of
from freshet.sql.text import rename_variables

# What needs no brackets wherever it is put: nothing can bind tighter than it does.
_CLOSED: Final = (
    exp.Column, exp.Literal, exp.Anonymous, exp.Paren, exp.Cast, exp.Case, exp.Null, exp.Boolean, exp.Dot,
)  # fmt: skip


def inline(tree: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """A copy of a tree with values in the place of columns (by name in lower case); other columns stay.

    >>> from freshet.sql.text import parse_expression, to_sql
    >>> to_sql(inline(parse_expression("w * 2 > k"), {"w": parse_expression("v + 1")}))
    '(v + 1) * 2 > k'
    """
    root = exp.Paren(this=tree.copy())
    rename_variables(root, {node.name.lower() for value in values.values() for node in value.find_all(exp.Column)})
    parts = 0
    for node in list(root.find_all(exp.Column)):
        value = values.get(node.name.lower())
        if value is not None:
            parts += parts_of(value)
            if parts > MOST_PARTS:
                raise SqlError(TOO_MANY_PARTS)
            node.replace(_bracketed(value, node.parent is root))
    inner: exp.Expr = root.this
    inner.pop()
    return inner


def column_names(tree: exp.Expr) -> set[str]:
    """Names in lower case of the columns that a tree reads."""
    return {node.name.lower() for node in tree.find_all(exp.Column)}


def _bracketed(value: exp.Expr, alone: bool) -> exp.Expr:
    return value.copy() if alone or isinstance(value, _CLOSED) else exp.Paren(this=value.copy())
