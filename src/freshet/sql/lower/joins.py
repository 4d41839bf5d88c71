"""FROM to operators: streams with their windows, sub-queries, and joins from left to right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from sqlglot import exp

from freshet.sql.check.expressions import checked
from freshet.sql.check.scope import FromMember, Relation, Scope, sources_of
from freshet.sql.lower.graph import GraphBuilder
from freshet.sql.lower.logical import Applied, LogicalJoin, Window
from freshet.sql.parse.dialect import StreamWindow
from freshet.sql.parse.errors import did_you_mean, fail, place_of
from freshet.sql.parse.limits import MOST_MEMBERS
from freshet.sql.parse.text import to_sql

_NO_AGGREGATE = "it is not allowed in {}; use HAVING after GROUP BY, or a sub-query"
_DECLARED = ": an application declares one by app.operator() or in [operators]"
Ctes = Mapping[str, exp.Expr]
"""The queries of a WITH, by name in lower case."""


class FromBuilder:
    """Builds the FROM of one SELECT; ``query`` builds its sub-queries."""

    def __init__(
        self, graph: GraphBuilder, query: Callable[[exp.Expr, str, Ctes], Relation], prefix: str, ctes: Ctes
    ) -> None:
        self._graph = graph
        self._query = query
        self._prefix = prefix
        self._ctes = ctes
        self._windows = 0
        self._unnamed = 0
        self._operators = 0

    def build(self, tree: exp.Select, where: Sequence[exp.Expr]) -> tuple[Relation, Scope, list[exp.Expr]]:
        """Builds the members and their joins; returns what they give out, and the conditions that no join took over."""
        clause = tree.args.get("from_")
        if clause is None:
            raise fail("a continuous query reads a stream: add FROM and its name", tree)
        # FROM a JOIN b, c: sqlglot keeps the joins of the first member on the member itself.
        joins = [*(clause.this.args.get("joins") or ()), *(tree.args.get("joins") or ())]
        if len(joins) >= MOST_MEMBERS:
            raise fail(f"a FROM joins at most {MOST_MEMBERS} streams: join some of them in a query before", joins[-1])
        nodes = [clause.this, *(join.this for join in joins)]
        members = [self._member(node) for node in nodes]
        _check_aliases(members, nodes)
        sources = sources_of(members)
        later = {item.alias.lower() for item in tree.expressions if isinstance(item, exp.Alias)}
        scope = Scope(sources, later=later)
        conditions = [self._condition(condition, scope, "WHERE") for condition in where]
        relation = sources[0].relation
        for number, join in enumerate(joins, start=1):
            first = clause.this if number == 1 else join.this
            relation = self._join(number, join, first, relation, sources, conditions)
        return relation, Scope(sources), conditions

    def _condition(self, tree: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
        aggregates = _NO_AGGREGATE.format(clause)
        return checked(scope.resolve(tree), scope.types, aggregates=aggregates, clause=clause).unnest()

    def _member(self, node: exp.Expr) -> tuple[str, Relation]:
        if isinstance(node, exp.Subquery):
            self._unnamed += not node.alias
            alias = node.alias or f"sub_{self._unnamed}"
            return alias, self._windowed(self._query(node.this, f"{self._prefix}.{alias}", self._ctes), node)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
            return node.alias or node.this.name, self._windowed(self._applied(node.this), node)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise fail("FROM takes streams, queries and sub-queries", node)
        for key in ("sample", "pivots", "version", "when", "hints", "only", "ordinality", "changes", "partition"):
            if node.args.get(key):
                raise fail("only a window may follow the name of a stream", node)
        return node.alias or node.name, self._windowed(self._named(node), node)

    def _applied(self, call: exp.Anonymous) -> Relation:
        """An operator of the user's own over a stream, a query, or another such operator."""
        function = self._graph.functions.get(call.name.lower())
        if function is None:
            hint = did_you_mean(call.name, self._graph.functions) or _DECLARED
            raise fail(f"there is no operator {call.name} for FROM{hint}", call)
        first, *rest = call.expressions or [None]
        if isinstance(first, exp.Column) and not first.table:
            source = self._named(exp.Table(this=first.this.copy()))
        elif isinstance(first, exp.Anonymous):
            source = self._applied(first)
        else:
            raise fail(f"the first argument of {call.name}() is the name of a stream, as in {call.name}(s)", call)
        self._operators += 1
        constants = tuple(_constant(each, call) for each in rest)
        if (problem := function.why_not(constants)) is not None:
            raise fail(problem, call)
        made = Applied(f"{self._prefix}.operator_{self._operators}", function, constants)
        columns = tuple((field.name, field.type) for field in function.returns)
        return self._graph.add(made, (source,), columns, call)

    def _named(self, node: exp.Table) -> Relation:
        cte = self._ctes.get(node.name.lower()) if not node.db else None
        if cte is None:
            return self._graph.stream(node)
        others = {name: tree for name, tree in self._ctes.items() if name != node.name.lower()}
        return self._query(cte, f"{self._prefix}.{node.name}", others)

    def _windowed(self, relation: Relation, node: exp.Expr) -> Relation:
        window = node.args.get("window")
        if window is None:
            return relation
        self._windows += 1
        return add_window(self._graph, f"{self._prefix}.window_{self._windows}", relation, window)

    def _join(
        self,
        number: int,
        join: exp.Join,
        first: exp.Expr,
        left: Relation,
        sources: Sequence[FromMember],
        conditions: list[exp.Expr],
    ) -> Relation:
        kind, on, right = _kind(join), join.args.get("on"), sources[number]
        if on is not None:
            condition: exp.Expr | None = self._condition(on, Scope(sources[: number + 1]), "ON")
        elif kind == "left":
            raise fail("LEFT JOIN needs a condition: LEFT JOIN ... ON a.k = b.k", join.this)
        else:
            condition = _take_over(conditions, Scope(sources), sources[: number + 1])
        alias, names = (sources[0].alias, sources[0].joined) if number == 1 else ("joined", left.names)
        kinds = [kind for _, kind in (*left.columns, *right.relation.columns)]
        columns = tuple(zip((*names, *right.joined), kinds, strict=True))
        made = LogicalJoin(f"{self._prefix}.join_{number}", kind, condition, (alias, right.alias), (first, join.this))
        return self._graph.add(made, (left, right.relation), columns, first)


def _constant(tree: exp.Expr, call: exp.Expr) -> str | int | float | bool:
    """The value of a literal in a call."""
    negative = isinstance(tree, exp.Neg)
    literal = tree.this if negative else tree
    if isinstance(literal, exp.Boolean) and not negative:
        return bool(literal.this)
    if isinstance(literal, exp.Literal) and literal.is_string and not negative:
        return str(literal.this)
    if isinstance(literal, exp.Literal) and not literal.is_string:
        number = int(literal.name) if literal.name.isdigit() else float(literal.name)
        return -number if negative else number
    raise fail(
        "an operator takes constants besides its stream: numbers, texts, true and false",
        tree if place_of(tree) else call,
    )


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
    rows, offset = window.args.get("rows"), window.args.get("offset") or 0.0
    made = Window(name, size, slide, rows, keys, None if time is None else time.name, offset)
    return graph.add(made, (relation,), place=window)


def _check_aliases(members: Sequence[tuple[str, Relation]], nodes: Sequence[exp.Expr]) -> None:
    seen: set[str] = set()
    for (alias, _), node in zip(members, nodes, strict=True):
        if alias.lower() in seen:
            raise fail(f"{alias} appears twice in FROM: give one of them another name with AS", node)
        seen.add(alias.lower())


def _kind(join: exp.Join) -> Literal["inner", "left"]:
    if join.args.get("using"):
        raise fail("USING is not supported: write ON a.k = b.k", join.this)
    side, kind = str(join.side).upper(), str(join.kind).upper()
    if join.method or kind not in ("", "INNER", "OUTER", "CROSS") or side not in ("", "LEFT"):
        spelled = " ".join(part for part in (str(join.method).upper(), side, kind) if part)
        raise fail(f"{spelled} JOIN is not supported: joins are inner or LEFT", join.this)
    return "left" if side == "LEFT" else "inner"


def _take_over(conditions: list[exp.Expr], scope: Scope, sources: Sequence[FromMember]) -> exp.Expr | None:
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
