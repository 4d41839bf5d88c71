"""Syntax trees: parts that are made, and parts that come into the place of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Final

from sqlglot import exp

from freshet.sql.parse.errors import SqlError
from freshet.sql.parse.limits import MOST_PARTS, TOO_MANY_PARTS, parts_of

# These need no parentheses anywhere: nothing binds tighter than they do.
_CLOSED: Final = (
    exp.Column, exp.Literal, exp.Anonymous, exp.Paren, exp.Cast, exp.Case, exp.Null, exp.Boolean, exp.Dot,
)  # fmt: skip


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A function call over copies of the arguments."""
    return exp.Anonymous(this=name.upper(), expressions=[argument.copy() for argument in arguments])


def cast(tree: exp.Expr, kind: str) -> exp.Cast:
    """A CAST of a copy to a type, which is named as in Spark."""
    return exp.Cast(this=tree.copy(), to=exp.DataType.build(kind, dialect="spark"))


def micros(time: exp.Expr) -> exp.Expr:
    """Microseconds since the epoch of a timestamp."""
    return call("UNIX_MICROS", time)


def timestamp(microseconds: exp.Expr) -> exp.Expr:
    """The timestamp of microseconds since the epoch."""
    return call("TIMESTAMP_MICROS", microseconds)


def plus(tree: exp.Expr, number: int) -> exp.Expr:
    """A tree plus a number."""
    kind = exp.Add if number >= 0 else exp.Sub
    return kind(this=tree.copy(), expression=exp.Literal.number(abs(number)))


def rewritten(
    tree: exp.Expr, change: Callable[[exp.Expr], exp.Expr | None], *, children_first: bool = False
) -> exp.Expr:
    """The tree with its nodes replaced by what ``change`` gives, level by level; None: a node stays.

    The tree is changed. What ``change`` gives is not looked at again.
    """
    root = exp.Paren(this=tree)
    nodes = list(tree.walk())
    for node in reversed(nodes) if children_first else nodes:
        new = change(node)
        if new is not None:
            node.replace(new)
    inner: exp.Expr = root.this
    return inner.pop()


def inline(tree: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """A copy of a tree with values in the place of columns (by name in lower case); other columns stay.

    >>> from freshet.sql.parse.text import parse_expression, to_sql
    >>> to_sql(inline(parse_expression("w * 2 > k"), {"w": parse_expression("v + 1")}))
    '(v + 1) * 2 > k'
    """
    copy, parts = tree.copy(), 0
    rename_variables(copy, {name for value in values.values() for name in column_names(value)})

    def put(node: exp.Expr) -> exp.Expr | None:
        nonlocal parts
        value = values.get(node.name.lower()) if isinstance(node, exp.Column) else None
        if value is None:
            return None
        parts += parts_of(value)
        if parts > MOST_PARTS:
            raise SqlError(TOO_MANY_PARTS)
        return value.copy() if node is copy else closed(value)

    return rewritten(copy, put)


def closed(tree: exp.Expr) -> exp.Expr:
    """A copy of a tree, in parentheses if it needs them inside another tree."""
    return tree.copy() if isinstance(tree, _CLOSED) else exp.Paren(this=tree.copy())


def column_names(tree: exp.Expr) -> set[str]:
    """Names in lower case of the columns that a tree reads."""
    return {node.name.lower() for node in tree.find_all(exp.Column)}


def rename_variables(tree: exp.Expr, taken: Set[str]) -> None:
    """Renames variables of lambdas that are called like a column (lower case), so that none is captured by mistake."""
    for function in tree.find_all(exp.Lambda):
        for variable in function.expressions:
            if variable.name.lower() not in taken:
                continue
            old, new = variable.name.lower(), f"{variable.name}_"
            while new.lower() in taken:
                new += "_"
            for node in [variable, *function.this.find_all(exp.Identifier)]:
                is_name = not isinstance(node.parent, exp.Column | exp.Dot) or node.arg_key == "this"
                if node.name.lower() == old and is_name and not isinstance(node.parent, exp.Column):
                    node.set("this", new)
