"""The columns of a SELECT: stars spread out, names given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from freshet.model.schema import KEPT, is_kept
from freshet.sql.errors import did_you_mean, fail
from freshet.sql.scope import Scope, Source
from freshet.sql.text import column


@dataclass(frozen=True, slots=True)
class Item:
    """A column of a SELECT.

    Args:
        name: Name of the output column.
        value: Its expression.
        place: Where it stands in the text.
        given: The name that the text gives: an alias or the name of a column; None for other expressions.
    """

    name: str
    value: exp.Expr
    place: exp.Expr
    given: str | None = None


def expand(tree: exp.Select, scope: Scope) -> Iterator[Item]:
    """The items of a SELECT in order, with names where the text gives them."""
    for item in tree.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if isinstance(star, exp.Star):
            yield from _star(item, star, scope)
        elif isinstance(item, exp.Alias):
            yield Item(item.alias, item.this, item.args["alias"], item.alias)
        elif isinstance(item, exp.Column | exp.Dot):
            yield Item(item.name, item, item, item.name)
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
    columns = [(name, joined) for source in sources for name, joined in _pairs(source)]
    unknown = left_out - {name.lower() for name, _ in columns}
    if unknown:
        raise fail(f"unknown column {min(unknown)} in EXCEPT{did_you_mean(min(unknown), dict(columns))}", item)
    for name, joined in columns:
        if name.lower() not in left_out:
            # A column is named as in the joined input: over several streams a shared name tells its stream.
            yield Item(joined, _placed(column(joined), scope), item, joined)


def _pairs(source: Source) -> Iterator[tuple[str, str]]:
    return zip(source.relation.names, source.joined, strict=True)


def _placed(tree: exp.Expr, scope: Scope) -> exp.Expr:
    """Qualifies a column of the joined input by its stream, so that it resolves like one the user wrote."""
    for source in scope.sources:
        for name, joined in _pairs(source):
            if joined == tree.name:
                return exp.column(
                    exp.to_identifier(name, quoted=True), table=exp.to_identifier(source.alias, quoted=True)
                )
    return tree
