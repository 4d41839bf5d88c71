"""SELECT to operators: FROM, WHERE, GROUP BY or the projection, DISTINCT; and UNION, EXCEPT, INTERSECT of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from freshet.model.functions import known_function
from freshet.model.numbers import common_type
from freshet.model.operators import Filter, Project, Union
from freshet.model.schema import type_text
from freshet.sql.check.expressions import checked
from freshet.sql.check.functions import has_aggregate, name_of
from freshet.sql.check.grouping import check_grouping, group_keys, in_window
from freshet.sql.check.scope import Relation, Scope, TypedColumns
from freshet.sql.check.types import is_known, type_of
from freshet.sql.lower.graph import GraphBuilder
from freshet.sql.lower.items import Item, check_names, expand
from freshet.sql.lower.joins import Ctes, FromBuilder, add_window
from freshet.sql.lower.logical import Aggregate, Distinct, SetOperation, Window
from freshet.sql.parse.dialect import Freshet
from freshet.sql.parse.errors import fail
from freshet.sql.parse.limits import as_filters, conjuncts
from freshet.sql.parse.text import to_sql
from freshet.sql.parse.trees import cast
from freshet.sql.parse.windows import window_key

UnionShape = TypedColumns | None
"""What a branch of a UNION must give out, with types where they are known; None: the query is no branch."""
_ENDLESS = "{} over a stream without an end needs a window: put for example {} after the stream's name"


class SelectBuilder:
    """Builds the operators of queries and their sub-queries into a graph."""

    def __init__(self, graph: GraphBuilder, previews: dict[Hashable, Relation] | None = None) -> None:
        self._graph = graph
        self._previews = {} if previews is None else previews

    def query(self, tree: exp.Expr, prefix: str, ctes: Ctes | None = None, shape: UnionShape = None) -> Relation:
        """Builds a SELECT or a UNION; operators are named ``<prefix>.<kind>``."""
        prefix = self._graph.prefix(prefix)
        known = {**(ctes or {}), **_ctes_of(tree)}
        while isinstance(tree, exp.Subquery | exp.Paren) and not tree.args.get("alias"):
            tree = tree.this
            known |= _ctes_of(tree)
        if isinstance(tree, exp.Union):
            return self._union(tree, prefix, known, shape)
        if isinstance(tree, exp.SetOperation):
            return self._set_operation(tree, prefix, known, shape)
        if not isinstance(tree, exp.Select):
            raise fail("a continuous query is a SELECT", tree)
        return self._select(tree, prefix, known, shape)

    def _union(self, tree: exp.Union, prefix: str, ctes: Ctes, shape: UnionShape) -> Relation:
        built, columns = self._members(tree, _branches(tree), prefix, ctes, shape)
        union = self._graph.add(Union(f"{prefix}.union"), built, columns, tree)
        return self._distinct(union, prefix, tree.expression) if tree.args.get("distinct") else union

    def _set_operation(self, tree: exp.SetOperation, prefix: str, ctes: Ctes, shape: UnionShape) -> Relation:
        kind: Literal["except", "intersect"] = "except" if isinstance(tree, exp.Except) else "intersect"
        if not tree.args.get("distinct"):
            raise fail(f"{kind.upper()} ALL is not supported: {kind.upper()} without ALL is", tree.expression)
        built, columns = self._members(tree, [tree.this, tree.expression], prefix, ctes, shape)
        return self._graph.add(SetOperation(f"{prefix}.{kind}", kind), built, columns, tree.expression)

    def _members(
        self, tree: exp.SetOperation, branches: Sequence[exp.Expr], prefix: str, ctes: Ctes, shape: UnionShape
    ) -> tuple[tuple[Relation, ...], TypedColumns]:
        relations = [self._preview(branch, prefix, ctes) for branch in branches]
        shape = _union_shape(branches, relations, shape, f"{'a' if tree.key == 'union' else 'an'} {tree.key.upper()}")
        built = tuple(
            self.query(branch, f"{prefix}.branch_{number}", ctes, shape)
            for number, branch in enumerate(branches, start=1)
        )
        return built, shape

    def _preview(self, tree: exp.Expr, prefix: str, ctes: Ctes) -> Relation:
        # The output names and types of all branches are needed before the first branch can be built. A branch that has
        # branches itself is looked at once, else each level would double the work.
        key = (id(tree), frozenset((name, id(cte)) for name, cte in ctes.items()))
        if key not in self._previews:
            self._previews[key] = SelectBuilder(self._graph.scratch(), self._previews).query(tree, prefix, ctes)
        return self._previews[key]

    def _select(self, tree: exp.Select, prefix: str, ctes: Ctes, shape: UnionShape) -> Relation:
        where = tree.args.get("where")
        conditions = [] if where is None else conjuncts(where.this)
        relation, scope, left = FromBuilder(self._graph, self.query, prefix, ctes).build(tree, conditions)
        for number, condition in enumerate(as_filters(left), start=1):
            relation = self._graph.add(Filter(f"{prefix}.filter_{number}", to_sql(condition)), (relation,))
        grouping = _grouping(tree)
        if grouping is not None:
            relation = self._aggregate(tree, prefix, relation, scope, shape, grouping)
        else:
            items = _items(tree, scope, aggregates="it needs a window or GROUP BY")
            texts, columns = _columns(items, scope, shape)
            relation = self._graph.add(Project(f"{prefix}.project", texts), (relation,), columns)
        if tree.args.get("distinct"):
            relation = self._distinct(relation, prefix, tree.expressions[0])
        return relation

    def _aggregate(
        self, tree: exp.Select, prefix: str, relation: Relation, scope: Scope, shape: UnionShape, place: exp.Expr
    ) -> Relation:
        keys, window = group_keys(tree, scope)
        if window is not None:
            relation, scope = self._group_window(window, f"{prefix}.window", relation, scope)
        elif self._graph.is_endless(relation):
            if not tree.args.get("group"):
                raise fail(_ENDLESS.format("an aggregate", "[RANGE 1 MINUTE] or [UNBOUNDED]"), place)
            problem = _ENDLESS.format("GROUP BY", "[RANGE 1 MINUTE]")
            raise fail(f"{problem}, or write GROUP BY window(ts, '1 minute')", place)
        items = _items(tree, scope, aggregates=None, window=window)
        for item in items:
            check_grouping(item.value, keys)
        having = _having(tree, scope, items, keys, window)
        texts, columns = _columns(items, scope, shape)
        made = Aggregate(f"{prefix}.aggregate", keys, texts, having)
        return self._graph.add(made, (relation,), columns, place)

    def _group_window(self, key: exp.Expr, name: str, relation: Relation, scope: Scope) -> tuple[Relation, Scope]:
        """Puts the window of a GROUP BY over what is grouped."""
        if len(scope.sources) == 1 and isinstance(self._graph.operators.get(scope.sources[0].relation.node), Window):
            raise fail("a stream has one window: after its name, or in GROUP BY", key)
        windowed = add_window(self._graph, name, relation, window_key(key))
        sources = [replace(source, relation=replace(source.relation, windowed=True)) for source in scope.sources]
        return windowed, Scope(sources)

    def _distinct(self, relation: Relation, prefix: str, place: exp.Expr) -> Relation:
        if self._graph.is_endless(relation):
            raise fail(_ENDLESS.format("DISTINCT", "[RANGE 1 MINUTE]"), place)
        return self._graph.add(Distinct(f"{prefix}.distinct"), (relation,), place=place)


def _ctes_of(tree: exp.Expr) -> dict[str, exp.Expr]:
    clause = tree.args.get("with_")
    if clause is None:
        return {}
    if clause.args.get("recursive"):
        raise fail("WITH RECURSIVE is not for streams", clause)
    return {cte.alias.lower(): cte.this for cte in clause.expressions}


def _branches(tree: exp.Expr) -> list[exp.Expr]:
    """Members of a UNION ALL chain; a UNION (distinct) inside it stays one member."""
    members: list[exp.Expr] = []
    waiting = [tree.expression, tree.this]
    while waiting:
        side = waiting.pop()
        flat = isinstance(side, exp.Union) and not side.args.get("distinct") and not side.args.get("with_")
        if flat:
            waiting += [side.expression, side.this]
        else:
            members.append(side)
    return members


def _union_shape(
    branches: Sequence[exp.Expr], relations: Sequence[Relation], outer: UnionShape, operation: str
) -> TypedColumns:
    kinds = [kind for _, kind in relations[0].columns]
    for branch, relation in zip(branches[1:], relations[1:], strict=True):
        if len(relation.columns) != len(kinds):
            raise fail(
                f"the branches of {operation} have the same columns, but the first has {len(kinds)} "
                f"and this one {len(relation.columns)}",
                branch,
            )
        kinds = [
            _common(kind, other, name, branch, operation)
            for kind, (name, other) in zip(kinds, relation.columns, strict=True)
        ]
    if outer is None:
        return tuple(zip(relations[0].names, kinds, strict=True))
    return tuple((name, kind if is_known(kind) else own) for (name, kind), own in zip(outer, kinds, strict=True))


def _common(one: pa.DataType, two: pa.DataType, name: str, branch: exp.Expr, operation: str) -> pa.DataType:
    kind = common_type(one, two)
    if is_known(one) and is_known(two) and not is_known(kind):
        raise fail(
            f"column {name} of {operation} is {type_text(one)} in one branch and {type_text(two)} in another: CAST one",
            branch,
        )
    return kind


def _grouping(tree: exp.Select) -> exp.Expr | None:
    """The place that makes a SELECT one of groups: GROUP BY, or the first part with an aggregate; None: it is not."""
    group, having = tree.args.get("group"), tree.args.get("having")
    parts = [*tree.expressions, *filter(None, [having])]
    return group or next((part for part in parts if has_aggregate(part)), having and tree)


def _items(tree: exp.Select, scope: Scope, aggregates: str | None, window: exp.Expr | None = None) -> list[Item]:
    """The columns of a SELECT, resolved and checked; one may use the aliases before it, as in Spark."""
    items: list[Item] = []
    aliases = _named(window)
    for item in expand(tree, scope):
        value = in_window(Scope(scope.sources, aliases).resolve(item.value), window)
        value = checked(value, scope.types, aggregates=aggregates)
        items.append(Item(item.name or _text_name(item.value), value, item.place))
        if item.name:
            aliases.setdefault(item.name.lower(), value)
    check_names(items)
    return items


def _having(
    tree: exp.Select, scope: Scope, items: Sequence[Item], keys: Sequence[str], window: exp.Expr | None
) -> str | None:
    clause = tree.args.get("having")
    if clause is None:
        return None
    aliases = {item.name.lower(): item.value for item in items} | _named(window)
    # As in Spark, an alias hides a column that is not grouped by.
    first = set(aliases) - {key.lower() for key in keys}
    resolved = in_window(Scope(scope.sources, aliases, first).resolve(clause.this), window)
    condition = checked(resolved, scope.types, aggregates=None, clause="HAVING")
    check_grouping(condition, keys)
    return to_sql(condition)


def _named(window: exp.Expr | None) -> dict[str, exp.Expr]:
    """The name by which a SELECT may call the key ``window(ts, ...)``."""
    return {} if window is None else {"window": window}


def _text_name(value: exp.Expr) -> str:
    plain = value.copy()
    for call in plain.find_all(exp.Anonymous):
        own = known_function(name_of(call))
        call.set("this", name_of(call) if own is None else own.name)
    for column in plain.find_all(exp.Column):
        column.set("table", None)
    return plain.sql(Freshet, comments=False, normalize_functions=False).replace("`", "")


def _columns(
    items: Sequence[Item], scope: Scope, shape: UnionShape
) -> tuple[tuple[tuple[str, str], ...], TypedColumns]:
    """The columns of a SELECT with their texts, and with their types."""
    own = tuple((item.name, type_of(item.value, scope.types)) for item in items)
    wanted = own if shape is None else shape
    texts = []
    for item, (_, kind), (name, other) in zip(items, own, wanted, strict=True):
        if shape is not None and isinstance(item.value, exp.Null):
            raise fail(f"NULL has no type here: write CAST(NULL AS type) AS {name}", item.place)
        value = cast(item.value, type_text(other)) if is_known(other) and kind != other else item.value
        texts.append((name, to_sql(value)))
    return tuple(texts), wanted
