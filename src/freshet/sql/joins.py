"""FROM to operators: streams with their windows, sub-queries, and joins from left to right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import pyarrow as pa
from sqlglot import exp

from freshet.sql.check import check_condition, check_functions
from freshet.sql.dialect import StreamWindow
from freshet.sql.errors import fail
from freshet.sql.explicit import make_explicit
from freshet.sql.graph import GraphBuilder
from freshet.sql.limits import MOST_MEMBERS
from freshet.sql.logical import Join, Window
from freshet.sql.scope import Relation, Scope, Source, sources_of
from freshet.sql.text import identifier, to_sql

_NO_AGGREGATE = "it cannot stand in {}; use HAVING after GROUP BY, or a sub-query"
Kind = Literal["inner", "left", "cross"]


class Queries(Protocol):
    """What builds sub-queries."""

    def query(self, tree: exp.Expr, prefix: str, ctes: Mapping[str, exp.Expr] | None = None) -> Relation: ...


@dataclass(frozen=True, slots=True)
class Joined:
    """A FROM that was built: what it gives out, its members, and the conditions of WHERE that are left."""

    relation: Relation
    sources: tuple[Source, ...]
    conditions: tuple[exp.Expr, ...]


class FromBuilder:
    """Builds the FROM of one SELECT."""

    def __init__(self, graph: GraphBuilder, queries: Queries, prefix: str, ctes: Mapping[str, exp.Expr]) -> None:
        self._graph = graph
        self._queries = queries
        self._prefix = prefix
        self._ctes = ctes
        self._windows = 0
        self._unnamed = 0
        self._first: exp.Expr | None = None

    def build(self, tree: exp.Select, where: Sequence[exp.Expr]) -> Joined:
        """Builds the members and their joins; conditions of WHERE that a join takes over are used up."""
        clause = tree.args.get("from_")
        if clause is None:
            raise fail("a continuous query reads a stream: add FROM and its name", tree)
        joins = list(tree.args.get("joins") or ())
        # FROM a JOIN b, c: sqlglot keeps the joins of the first member on the member itself.
        nested = list(clause.this.args.get("joins") or ())
        joins = nested + joins
        if len(joins) >= MOST_MEMBERS:
            raise fail(f"a FROM joins at most {MOST_MEMBERS} streams: join some of them in a query before", joins[-1])
        self._first = clause.this
        members = [self._member(clause.this), *(self._member(join.this) for join in joins)]
        _check_aliases(members, [clause.this, *(join.this for join in joins)])
        sources = sources_of([(alias, relation) for alias, relation in members])
        later = {item.alias.lower() for item in tree.expressions if isinstance(item, exp.Alias)}
        scope = Scope(sources, later=later)
        conditions = [self._condition(condition, scope, "WHERE") for condition in where]
        relation = sources[0].relation
        for number, join in enumerate(joins, start=1):
            relation = self._join(number, join, relation, sources, conditions)
        return Joined(relation, sources, tuple(conditions))

    def _condition(self, tree: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
        resolved = check_functions(scope.resolve(tree), aggregates=_NO_AGGREGATE.format(clause)).unnest()
        check_condition(resolved, scope.types, clause)
        return make_explicit(resolved, scope.types)

    def _member(self, node: exp.Expr) -> tuple[str, Relation]:
        if isinstance(node, exp.Subquery):
            self._unnamed += not node.alias
            alias = node.alias or f"sub_{self._unnamed}"
            relation = self._queries.query(node.this, f"{self._prefix}.{alias}", self._ctes)
            window = node.args.get("window")
            return alias, self._window(relation, window) if window else relation
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise fail("FROM takes streams, queries and sub-queries", node)
        for key in ("sample", "pivots", "version", "when", "hints", "only", "ordinality", "changes", "partition"):
            if node.args.get(key):
                raise fail("only a window may stand after the name of a stream", node)
        alias_node = node.args.get("alias")
        if alias_node is not None and alias_node.args.get("columns"):
            raise fail("a stream's alias cannot rename columns: use AS in the SELECT", node)
        relation = self._named(node)
        window = node.args.get("window")
        return node.alias or node.name, self._window(relation, window) if window else relation

    def _named(self, node: exp.Table) -> Relation:
        cte = self._ctes.get(node.name.lower()) if not node.db else None
        if cte is None:
            return self._graph.stream(node)
        others = {name: tree for name, tree in self._ctes.items() if name != node.name.lower()}
        return self._queries.query(cte, f"{self._prefix}.{node.name}", others)

    def _window(self, relation: Relation, window: StreamWindow) -> Relation:
        self._windows += 1
        return add_window(self._graph, f"{self._prefix}.window_{self._windows}", relation, window)

    def _join(
        self,
        number: int,
        join: exp.Join,
        left: Relation,
        sources: Sequence[Source],
        conditions: list[exp.Expr],
    ) -> Relation:
        kind = _kind(join)
        right = sources[number]
        visible = Scope(sources[: number + 1])
        on = join.args.get("on")
        if kind == "cross" and on is None:
            condition = _take_over(conditions, Scope(sources), sources[: number + 1])
        else:
            condition = None if on is None else self._condition(on, visible, "ON")
        if kind == "left" and condition is None:
            raise fail("LEFT JOIN needs a condition: LEFT JOIN ... ON a.k = b.k", join.this)
        kind = "inner" if kind == "cross" and condition is not None else kind
        nodes = (self._first if number == 1 else join.this, join.this)
        return self._add_join(number, kind, condition, left, right, sources[:number], nodes)

    def _add_join(
        self,
        number: int,
        kind: Kind,
        condition: exp.Expr | None,
        left: Relation,
        right: Source,
        before: Sequence[Source],
        nodes: tuple[exp.Expr | None, exp.Expr],
    ) -> Relation:
        left_name = before[0].alias if len(before) == 1 else "joined"
        while left_name.lower() == right.alias.lower():
            left_name += "_"
        own = before[0].relation.names if len(before) == 1 else left.names
        joined_left = before[0].joined if len(before) == 1 else left.names
        places = {new.lower(): (left_name, old) for new, old in zip(joined_left, own, strict=True)}
        places |= {new.lower(): (right.alias, old) for new, old in zip(right.joined, right.relation.names, strict=True)}
        names = (*joined_left, *right.joined)
        texts = tuple((name, to_sql(_qualified(places[name.lower()]))) for name in names)
        text = None if condition is None else to_sql(_qualify(condition, places))
        kinds = [kind for _, kind in (*left.columns, *right.relation.columns)]
        columns: tuple[tuple[str, pa.DataType], ...] = tuple(zip(names, kinds, strict=True))
        name = f"{self._prefix}.join_{number}"
        if condition is not None:
            self._graph.conditions[name] = condition
        made = Join(name, kind, text, left_name, right.alias, texts)
        return self._graph.add(name, lambda _: made, (left, right.relation), columns, *nodes)


def add_window(graph: GraphBuilder, name: str, relation: Relation, window: StreamWindow) -> Relation:
    """Puts a window over a relation."""
    scope = Scope(sources_of([(relation.node, relation)]))
    keys = tuple(to_sql(scope.resolve(key)) for key in window.args.get("partition") or ())
    size, slide = window.args.get("size"), window.args.get("slide")
    if size is not None and slide is not None and slide > size:
        raise fail("SLIDE is at most the RANGE, else tuples fall between the windows", window)
    named = window.args.get("time")
    time = None if named is None else scope.resolve(named)
    if time is not None and not isinstance(time, exp.Column):
        raise fail("a window goes by a time column of its stream: compute it in the query before", named)
    made = Window(
        name, window.args["kind"], size, slide, window.args.get("rows"), keys, None if time is None else time.name,
        window.args.get("offset") or 0.0,
    )  # fmt: skip
    return graph.add(name, lambda _: made, (relation,), None, window)


def _check_aliases(members: Sequence[tuple[str, Relation]], nodes: Sequence[exp.Expr]) -> None:
    seen: set[str] = set()
    for (alias, _), node in zip(members, nodes, strict=True):
        if alias.lower() in seen:
            raise fail(f"{alias} stands twice in FROM: give one of them another name with AS", node)
        seen.add(alias.lower())


def _kind(join: exp.Join) -> Kind:
    if join.args.get("using"):
        raise fail("USING is not supported: write ON a.k = b.k", join.this)
    side, kind = str(join.side).upper(), str(join.kind).upper()
    if join.method or kind not in ("", "INNER", "OUTER", "CROSS") or side not in ("", "LEFT"):
        spelled = " ".join(part for part in (str(join.method).upper(), side, kind) if part)
        raise fail(f"{spelled} JOIN is not supported: joins are inner or LEFT", join.this)
    if side == "LEFT":
        return "left"
    return "inner" if join.args.get("on") is not None else "cross"


def _take_over(conditions: list[exp.Expr], scope: Scope, sources: Sequence[Source]) -> exp.Expr | None:
    """Removes the conditions that compare the newest member with those before it; returns their conjunction."""
    present = {source.alias for source in sources}
    newest = sources[-1].alias
    taken = [
        condition
        for condition in conditions
        if newest in (tables := scope.tables(condition)) and len(tables) > 1 and tables <= present
    ]
    conditions[:] = [condition for condition in conditions if not any(condition is one for one in taken)]
    return exp.and_(*taken, copy=False) if taken else None


def _qualified(place: tuple[str, str]) -> exp.Column:
    alias, name = place
    return exp.Column(this=identifier(name), table=identifier(alias))


def _qualify(tree: exp.Expr, places: Mapping[str, tuple[str, str]]) -> exp.Expr:
    root = exp.Paren(this=tree.copy())
    for node in list(root.find_all(exp.Column)):
        if node.name.lower() in places:
            node.replace(_qualified(places[node.name.lower()]))
    inner: exp.Expr = root.this
    inner.pop()
    return inner
