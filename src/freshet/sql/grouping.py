"""GROUP BY: its keys, and the rule that other columns stand inside aggregates only."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from freshet.sql.check import check_functions
from freshet.sql.errors import fail
from freshet.sql.explicit import make_explicit
from freshet.sql.functions import is_aggregate, name_of
from freshet.sql.scope import Scope
from freshet.sql.text import to_sql

_NO_AGGREGATE = "GROUP BY takes columns and expressions of one tuple"


def group_keys(tree: exp.Select, scope: Scope) -> tuple[list[exp.Expr], dict[str, exp.Expr]]:
    """The keys of a GROUP BY, and names by which a SELECT may call them (``window`` of ``window(ts, ...)``)."""
    clause = tree.args.get("group")
    if clause is None:
        return [], {}
    for key in ("grouping_sets", "cube", "rollup", "totals", "all"):
        if clause.args.get(key):
            raise fail(f"GROUP BY {key.replace('_', ' ').upper()} is not supported: name the columns", clause)
    aliases = {item.alias.lower(): item.this for item in tree.expressions if isinstance(item, exp.Alias)}
    keys = [_key(node, tree, scope, aliases) for node in clause.expressions]
    named = {str(name_of(key)): key for key in keys if name_of(key) in ("window", "session_window")}
    return keys, named


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
    own = {column.name.lower() for column in value.find_all(exp.Column)}
    known = {name.lower() for source in scope.sources for name in source.relation.names}
    return scope.resolve(value) if own <= known else value


def check_grouping(tree: exp.Expr, keys: Sequence[exp.Expr]) -> None:
    """Raises where a column stands neither in GROUP BY nor inside an aggregate."""
    texts = {to_sql(key).lower() for key in keys}
    _check(tree, texts)


def _check(tree: exp.Expr, keys: set[str]) -> None:
    if is_aggregate(tree) or to_sql(tree).lower() in keys:
        return
    if isinstance(tree, exp.Filter):
        return _check(tree.this, keys)
    if isinstance(tree, exp.Column):
        raise fail(f"column {tree.name} must stand in GROUP BY or inside an aggregate such as max({tree.name})", tree)
    for child in tree.iter_expressions():
        _check(child, keys)
    return None
