"""Which columns an expression may name, and what they are called after its inputs are joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from sqlglot import exp

from freshet.model.operators import WINDOW_END, WINDOW_START
from freshet.model.schema import ARRIVAL
from freshet.sql.check.functions import BARE_FUNCTIONS, is_aggregate
from freshet.sql.parse.errors import SqlError, did_you_mean, fail
from freshet.sql.parse.limits import MOST_PARTS, TOO_MANY_PARTS, parts_of
from freshet.sql.parse.text import column, with_fields
from freshet.sql.parse.trees import column_names, rename_variables, rewritten

TypedColumns = tuple[tuple[str, pa.DataType], ...]
"""Names and types of columns."""
_WINDOW_COLUMNS: Final = {"window_start": WINDOW_START, "window_end": WINDOW_END}


@dataclass(frozen=True, slots=True)
class Relation:
    """What an operator or a stream outputs: the name of the node, its columns, and whether a window comes before it.

    Over a window a query can name ``window_start`` and ``window_end``, unless a column has that name.
    """

    node: str
    columns: TypedColumns
    windowed: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(name for name, _ in self.columns)


@dataclass(frozen=True, slots=True)
class FromMember:
    """One member of a FROM: its alias, what it reads, and the name of each of its columns in the joined input."""

    alias: str
    relation: Relation
    joined: tuple[str, ...]

    def find(self, name: str) -> str | None:
        """Name of a column in the joined input, or None."""
        pairs = zip(self.relation.names, self.joined, strict=True)
        return next((joined for own, joined in pairs if own.lower() == name.lower()), None)


def sources_of(members: Sequence[tuple[str, Relation]]) -> tuple[FromMember, ...]:
    """Names the columns of a FROM: a name that only one member has stays, others become ``alias_name``.

    >>> one, two = Relation("a", (("k", pa.int64()), ("v", pa.int64()))), Relation("b", (("k", pa.int64()),))
    >>> [source.joined for source in sources_of([("a", one), ("b", two)])]
    [('a_k', 'v'), ('b_k',)]
    """
    count = Counter(name.lower() for _, relation in members for name in relation.names)
    taken = {name for name, times in count.items() if times == 1}
    sources = []
    for alias, relation in members:
        joined = [name if count[name.lower()] == 1 else _free(f"{alias}_{name}", taken) for name in relation.names]
        sources.append(FromMember(alias, relation, tuple(joined)))
    return tuple(sources)


def _free(name: str, taken: set[str]) -> str:
    while name.lower() in taken:
        name += "_"
    taken.add(name.lower())
    return name


@dataclass(frozen=True, slots=True)
class Scope:
    """Resolves the names in expressions over the members of one FROM.

    Args:
        sources: The members.
        aliases: Aliases of the SELECT (lower case) and their expressions; a column of the same name wins.
        first: Aliases that win over a column of the same name, except inside aggregates.
        later: Aliases that cannot be named here because they are computed later.
    """

    sources: Sequence[FromMember]
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    first: Set[str] = frozenset()
    later: Set[str] = frozenset()

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Types of the joined input's columns, by name in lower case."""
        columns = {
            joined.lower(): kind
            for source in self.sources
            for joined, (_, kind) in zip(source.joined, source.relation.columns, strict=True)
        }
        windowed = any(source.relation.windowed for source in self.sources)
        return columns | (dict.fromkeys(_WINDOW_COLUMNS.values(), pa.timestamp("us", tz="UTC")) if windowed else {})

    def resolve(self, tree: exp.Expr) -> exp.Expr:
        """A copy of a tree in which every name is a column of the joined input, spelled as there."""
        inner_query = tree.find(exp.Query)
        if inner_query is not None:
            raise fail("a sub-query is allowed in FROM only: join with it instead", inner_query)
        copy, parts = tree.copy(), 0
        rename_variables(copy, self.types.keys())

        def resolved(node: exp.Expr) -> exp.Expr | None:
            nonlocal parts
            if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
                return None
            found = self._resolved(node)
            parts += parts_of(found)
            if parts > MOST_PARTS:
                raise fail(TOO_MANY_PARTS, node)
            if not isinstance(found, exp.Column):
                return found
            # In place: in a list of thousands each replacement would go over all of it.
            node.set("this", found.this)
            node.set("table", None)
            return None

        return rewritten(copy, resolved)

    def tables(self, tree: exp.Expr) -> set[str]:
        """Aliases of the members that a resolved tree reads from."""
        names = column_names(tree)
        return {source.alias for source in self.sources if names & {joined.lower() for joined in source.joined}}

    def _resolved(self, node: exp.Column) -> exp.Expr:
        parts = [part.name for part in node.parts]
        if any(part.startswith("__") for part in parts):
            raise fail(f"column {'.'.join(parts)} begins with two underscores, which Freshet keeps for itself", node)
        owner = next((s for s in self.sources if len(parts) > 1 and s.alias.lower() == parts[0].lower()), None)
        found = (owner and _qualified(owner, parts)) or self._unqualified(node, parts)
        if found is None:
            raise self._unknown(node, parts, owner)
        for part in found.find_all(exp.Identifier, exp.Anonymous):
            part.update_positions(node.this)
        return found

    def _unqualified(self, node: exp.Column, parts: list[str]) -> exp.Expr | None:
        found = [(source, joined) for source in self.sources if (joined := source.find(parts[0])) is not None]
        if len(found) > 1:
            choices = " or ".join(f"{source.alias}.{parts[0]}" for source, _ in found)
            raise fail(f"column {parts[0]} is in more than one stream: write {choices}", node)
        if found and (parts[0].lower() not in self.first or _in_aggregate(node)):
            return column(found[0][1], *parts[1:])
        alias = self.aliases.get(parts[0].lower())
        if alias is not None:
            closed = isinstance(alias, exp.Column | exp.Anonymous)
            return with_fields(alias.copy() if closed else exp.Paren(this=alias.copy()), parts[1:])
        bound = _window_column(parts, self.sources)
        if bound is not None:
            return column(bound)
        if len(parts) == 1 and parts[0].lower() in BARE_FUNCTIONS and not node.this.quoted:
            return exp.Anonymous(this=parts[0].upper(), expressions=[])
        return None

    def _unknown(self, node: exp.Column, parts: list[str], owner: FromMember | None) -> SqlError:
        aliases = [source.alias for source in self.sources]
        if len(parts) > 1 and owner is None:
            hint = did_you_mean(parts[0], aliases)
            return fail(f"{parts[0]} is not a stream of this FROM (there: {', '.join(aliases)}){hint}", node)
        if len(parts) == 1 and parts[0].lower() in self.later:
            return fail(f"{parts[0]} is an alias of the SELECT, which WHERE cannot see: repeat its expression", node)
        searched = [owner] if owner else list(self.sources)
        known = [name for source in searched for name in source.relation.names]
        name = parts[1] if owner else parts[0]
        hint = did_you_mean(name, known) or f" (columns: {_listing(known)})"
        place = node.this if owner else node
        return fail(f"unknown column {name} of {' and '.join(s.alias for s in searched)}{hint}", place)


def _in_aggregate(node: exp.Expr) -> bool:
    """Whether a node is part of an aggregate, or of its FILTER."""
    above = node.parent
    return above is not None and (isinstance(above, exp.Filter) or is_aggregate(above) or _in_aggregate(above))


def _qualified(owner: FromMember, parts: Sequence[str]) -> exp.Expr | None:
    joined = owner.find(parts[1]) or _window_column(parts[1:], [owner])
    return None if joined is None else column(joined, *parts[2:])


def _window_column(parts: Sequence[str], sources: Sequence[FromMember]) -> str | None:
    windowed = len(parts) == 1 and any(source.relation.windowed for source in sources)
    return _WINDOW_COLUMNS.get(parts[0].lower()) if windowed else None


def _listing(names: Sequence[str], most: int = 12) -> str:
    shown = [name for name in names if name != ARRIVAL]
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")
