"""GROUP BY: its keys, and the rule that other columns are allowed inside aggregates only."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from sqlglot import exp

from freshet.model.operators import WINDOW_END, WINDOW_START
from freshet.model.schema import ARRIVAL
from freshet.sql.check.explicit import make_explicit
from freshet.sql.check.expressions import check_functions
from freshet.sql.check.functions import name_of
from freshet.sql.check.scope import Scope
from freshet.sql.lower.calls import is_call, read_call
from freshet.sql.parse.errors import fail
from freshet.sql.parse.text import column, to_sql
from freshet.sql.parse.trees import call, column_names, rewritten

_NO_AGGREGATE = "GROUP BY takes columns and expressions of one tuple"
_OF_THE_ROW: Final = (ARRIVAL, WINDOW_START, WINDOW_END)
"""Columns that every row of an aggregate has; they are no keys."""


def in_window(tree: exp.Expr, key: exp.Expr | None) -> exp.Expr:
    """The tree with start and end of the window in the place of a key ``window(ts, ...)``; the tree is changed.

    Raises:
        SqlError: A window() is not that key.
    """
    text = None if key is None else to_sql(key)
    bounds = {"start": WINDOW_START, "end": WINDOW_END}

    def bound(node: exp.Expr) -> exp.Expr | None:
        if name_of(node) not in ("window", "session_window", "window_time"):
            return None
        if to_sql(node) != text:
            raise fail(f"{name_of(node)}() is allowed in GROUP BY only, as in GROUP BY window(ts, '1 minute')", node)
        field = node.parent
        if isinstance(field, exp.Dot) and field.expression.name.lower() in bounds:
            field.replace(column(bounds[field.expression.name.lower()]))
            return None
        parts = (part for name, bound in bounds.items() for part in (exp.Literal.string(name), column(bound)))
        return call("NAMED_STRUCT", *parts)

    return rewritten(tree, bound)


def group_keys(tree: exp.Select, scope: Scope) -> tuple[tuple[str, ...], exp.Expr | None]:
    """The texts of the keys of a GROUP BY, and its key ``window(ts, ...)``, which is not among them."""
    clause = tree.args.get("group")
    if clause is None:
        return (), None
    for part in ("grouping_sets", "cube", "rollup", "totals", "all"):
        if clause.args.get(part):
            raise fail(f"GROUP BY {part.replace('_', ' ').upper()} is not supported: name the columns", clause)
    for node in clause.expressions:
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            name = "GROUPING SETS" if isinstance(node, exp.GroupingSets) else node.key.upper()
            raise fail(f"GROUP BY {name} is not supported: name the columns", node)
    aliases = {item.alias.lower(): item.this for item in tree.expressions if isinstance(item, exp.Alias)}
    keys = [_key(node, tree, scope, aliases) for node in clause.expressions]
    for key in keys:
        if name_of(key) == "session_window":
            raise fail("session_window() is not supported: write GROUP BY window(ts, '1 minute')", key)
    windows = [key for key in keys if name_of(key) == "window"]
    if len(windows) > 1:
        raise fail("a GROUP BY has one window", windows[1])
    return tuple(to_sql(key) for key in keys if name_of(key) != "window"), windows[0] if windows else None


def _key(node: exp.Expr, tree: exp.Select, scope: Scope, aliases: dict[str, exp.Expr]) -> exp.Expr:
    if isinstance(node, exp.Literal) and not node.is_string:
        number = int(node.name) if node.name.isdigit() else 0
        if not 1 <= number <= len(tree.expressions):
            raise fail(f"GROUP BY {node.name} is not the number of a column of the SELECT", node)
        node = tree.expressions[number - 1].unalias()
    resolved = Scope(scope.sources, {name: _inner(value, scope) for name, value in aliases.items()}).resolve(node)
    return make_explicit(check_functions(resolved, aggregates=_NO_AGGREGATE).unnest(), scope.types)


def _inner(value: exp.Expr, scope: Scope) -> exp.Expr:
    # An alias may name itself (lane AS lane); only those that resolve by themselves can be keys.
    known = {name.lower() for source in scope.sources for name in source.relation.names}
    return scope.resolve(value) if column_names(value) <= known else value


def check_grouping(tree: exp.Expr, keys: Collection[str]) -> None:
    """Refuses columns that are neither in GROUP BY nor inside an aggregate, and aggregates that windows lack."""
    if is_call(tree):
        read_call(tree)
    if is_call(tree) or to_sql(tree) in keys:
        return
    if isinstance(tree, exp.Column) and tree.name.lower() not in _OF_THE_ROW:
        raise fail(f"column {tree.name} must be in GROUP BY or inside an aggregate such as max({tree.name})", tree)
    for child in tree.iter_expressions():
        check_grouping(child, keys)
