"""Aggregate, DISTINCT and set operations of a query graph as computations over windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlglot import exp

from freshet.sql.calls import Aggregated, is_call, read_call
from freshet.sql.flows.flow import MEMBER, Flow, hidden
from freshet.sql.flows.fold import Computing, fold_flow
from freshet.sql.flows.stateless import FilterFlow, ProjectFlow, UnionFlow
from freshet.sql.limits import as_filters, conjuncts
from freshet.sql.logical import Aggregate
from freshet.sql.text import column, parse_expression, to_sql


def aggregate_flow(aggregate: Aggregate, child: Flow, place: exp.Expr | None) -> Flow:
    """GROUP BY: every different call is computed once, what is left of the expressions is evaluated behind the fold."""
    taking = _Taking(aggregate.keys, child)
    columns = [(name, taking.taken(parse_expression(text))) for name, text in aggregate.columns]
    having = [] if aggregate.having is None else conjuncts(parse_expression(aggregate.having))
    conditions = [taking.taken(condition) for condition in as_filters(having)]
    flow = fold_flow(aggregate.name, taking.computing.done(), child, place)
    for number, condition in enumerate(conditions, start=1):
        flow = FilterFlow(f"{aggregate.name}.having_{number}", condition, flow)
    return ProjectFlow(columns, flow)


class _Taking:
    """Takes keys and calls out of expressions and puts the columns of a fold in their place."""

    def __init__(self, keys: Sequence[str], child: Flow) -> None:
        self.computing = Computing(child.traits.marked)
        self._keys: dict[str, exp.Expr] = {}
        for text in keys:
            key = parse_expression(text)
            # The window is a part of every group by itself.
            bound = child.traits.bounds.get(key.name.lower()) if isinstance(key, exp.Column) else None
            self._keys[to_sql(key)] = hidden(bound) if bound else column(self.computing.key(key))

    def taken(self, tree: exp.Expr) -> exp.Expr:
        root = exp.Paren(this=tree.copy())
        self._take(root.this)
        inner: exp.Expr = root.this
        inner.pop()
        return inner

    def _take(self, tree: exp.Expr) -> None:
        key = self._keys.get(to_sql(tree))
        if key is not None:
            tree.replace(key.copy())
        elif is_call(tree):
            tree.replace(column(self.computing.call(read_call(tree))))
        else:
            for child in list(tree.iter_expressions()):
                self._take(child)


def distinct_flow(name: str, child: Flow, place: exp.Expr | None) -> Flow:
    """DISTINCT: one row for each boundary, or those tuples that have no equal before them in their window."""
    span = child.traits.span
    with_each_tuple = span is not None and span.slide is None
    computing, columns = Computing(child.traits.marked), _keyed(child)
    keyed = [(shown, value if _is_hidden(value) else column(computing.key(value))) for shown, value in columns]
    first = computing.call(Aggregated("count", None)) if with_each_tuple else None
    flow = fold_flow(name, computing.done(), child, place)
    if first is not None:
        flow = FilterFlow(f"{name}.first", exp.EQ(this=column(first), expression=exp.Literal.number(1)), flow)
    return ProjectFlow(keyed, flow)


def set_flow(name: str, kind: Literal["except", "intersect"], members: Sequence[Flow], place: exp.Expr | None) -> Flow:
    """EXCEPT and INTERSECT: which members a row stands in is told by the least and the greatest of their numbers."""
    union = UnionFlow(f"{name}.members", members, place)
    computing, columns = Computing(union.traits.marked), _keyed(union)
    keyed = [(shown, value if _is_hidden(value) else column(computing.key(value))) for shown, value in columns]
    greatest = column(computing.call(Aggregated("max", hidden(MEMBER))))
    last = exp.EQ(this=greatest, expression=exp.Literal.number(int(kind == "intersect")))
    conditions: list[exp.Expr] = [last]
    if kind == "intersect":
        least = column(computing.call(Aggregated("min", hidden(MEMBER))))
        conditions.append(exp.EQ(this=least, expression=exp.Literal.number(0)))
    flow = fold_flow(name, computing.done(), union, place)
    for number, condition in enumerate(conditions, start=1):
        flow = FilterFlow(f"{name}.member_{number}", condition, flow)
    return ProjectFlow(keyed, flow)


def _keyed(flow: Flow) -> list[tuple[str, exp.Expr]]:
    """The columns of a flow as keys; start and end of the window are there without being keys."""
    bounds = flow.traits.bounds
    return [(name, column(bounds.get(name.lower(), name))) for name in flow.traits.names]


def _is_hidden(value: exp.Expr) -> bool:
    return value.name.startswith("__")
