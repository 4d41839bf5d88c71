"""The columns of a SELECT: stars spread out, names given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from freshet.model.schema import KEPT, is_kept
from freshet.sql.check.scope import Scope
from freshet.sql.parse.errors import did_you_mean, fail


@dataclass(frozen=True, slots=True)
class Item:
    """A column of a SELECT, and its place in the text.

    Its name is an alias or the name of a column; other expressions have an empty one.
    """

    name: str
    value: exp.Expr
    place: exp.Expr


def expand(tree: exp.Select, scope: Scope) -> Iterator[Item]:
    """The items of a SELECT in order, with names where the text gives them."""
    for item in tree.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if isinstance(star, exp.Star):
            yield from _star(item, star, scope)
        elif isinstance(item, exp.Alias):
            yield Item(item.alias, item.this, item.args["alias"])
        elif isinstance(item, exp.Column | exp.Dot):
            yield Item(item.name, item, item)
        elif isinstance(item, exp.Aliases):
            raise fail("one column has one name: write AS name", item)
        else:
            yield Item("", item, item)


def check_names(items: Sequence[Item]) -> None:
    """Output names are unique, whatever their case, and leave two leading underscores to Freshet."""
    seen: dict[str, Item] = {}
    for item in items:
        if is_kept(item.name):
            raise fail(f"{item.name} is a name that Freshet keeps for itself: {KEPT}", item.place)
        if item.name.lower() in seen:
            raise fail(f"two columns are called {item.name}: give one another name with AS", item.place)
        seen[item.name.lower()] = item


def _star(item: exp.Expr, star: exp.Star, scope: Scope) -> Iterator[Item]:
    for key in ("replace", "rename"):
        if star.args.get(key):
            raise fail(f"* {key.upper()} is not supported: name the columns", item)
    sources = scope.sources
    if isinstance(item, exp.Column):
        sources = tuple(source for source in sources if source.alias.lower() == item.table.lower())
        if not sources:
            hint = did_you_mean(item.table, [source.alias for source in scope.sources])
            raise fail(f"{item.table} is not a stream of this FROM{hint}", item)
    left_out = {name.name.lower() for name in star.args.get("except_") or ()}
    columns = [
        (source.alias, name, joined)
        for source in sources
        for name, joined in zip(source.relation.names, source.joined, strict=True)
    ]
    known = [name for _, name, _ in columns]
    unknown = left_out - {name.lower() for name in known}
    if unknown:
        raise fail(f"unknown column {min(unknown)} in EXCEPT{did_you_mean(min(unknown), known)}", item)
    for alias, name, joined in columns:
        if name.lower() not in left_out:
            # It is named as in the joined input (over several streams a shared name tells its stream), and resolves
            # like a column that the user wrote.
            value = exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True))
            yield Item(joined, value, item)
