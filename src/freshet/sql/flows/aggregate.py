"""Aggregate, DISTINCT and set operations of a query graph as computations over windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlglot import exp

from freshet.sql.flows.flow import MEMBER, Flow
from freshet.sql.flows.fold import Computation, fold_flow
from freshet.sql.flows.stateless import FilterFlow, ProjectFlow, UnionFlow
from freshet.sql.lower.calls import Aggregated, is_call, read_call
from freshet.sql.lower.logical import Aggregate
from freshet.sql.parse.limits import as_filters, conjuncts
from freshet.sql.parse.text import column, parse_expression, to_sql


def aggregate_flow(aggregate: Aggregate, child: Flow, place: exp.Expr | None) -> Flow:
    """GROUP BY: every different call is computed once, what is left of the expressions is evaluated behind the fold."""
    taking = _Taking(aggregate.keys, child)
    columns = [(name, taking.taken(parse_expression(text))) for name, text in aggregate.columns]
    having = [] if aggregate.having is None else conjuncts(parse_expression(aggregate.having))
    conditions = [taking.taken(condition) for condition in as_filters(having)]
    flow = fold_flow(aggregate.name, taking.computation, child, place)
    return ProjectFlow(columns, _filtered(f"{aggregate.name}.having", conditions, flow))


class _Taking:
    """Takes keys and calls out of expressions and puts the columns of a fold in their place."""

    def __init__(self, keys: Sequence[str], child: Flow) -> None:
        self.computation = Computation(child.traits.marked)
        self._keys: dict[str, exp.Expr] = {}
        for text in keys:
            key = parse_expression(text)
            # The window is a part of every group by itself.
            bound = child.traits.bounds.get(key.name.lower()) if isinstance(key, exp.Column) else None
            self._keys[to_sql(key)] = column(bound) if bound else column(self.computation.key(key))

    def taken(self, tree: exp.Expr) -> exp.Expr:
        # Unlike rewritten(), this goes no further down where something was taken.
        return tree.transform(self._taken)

    def _taken(self, node: exp.Expr) -> exp.Expr:
        key = self._keys.get(to_sql(node))
        if key is not None:
            return key.copy()
        return column(self.computation.call(read_call(node))) if is_call(node) else node


def distinct_flow(name: str, child: Flow, place: exp.Expr | None) -> Flow:
    """DISTINCT: one row of equal ones at each boundary, or each tuple without an equal before it in its window."""
    span = child.traits.span
    computation = Computation(child.traits.marked)
    columns = _keyed(child, computation)
    with_each_tuple = span is not None and span.slide is None
    first = _equal(computation, Aggregated("count", None), 1) if with_each_tuple else None
    flow = fold_flow(name, computation, child, place)
    return ProjectFlow(columns, flow if first is None else FilterFlow(f"{name}.first", first, flow))


def set_flow(name: str, kind: Literal["except", "intersect"], members: Sequence[Flow], place: exp.Expr | None) -> Flow:
    """EXCEPT and INTERSECT: the least and the greatest number of a member tell which members have a row."""
    union = UnionFlow(f"{name}.members", members, place)
    computation, member = Computation(union.traits.marked), column(MEMBER)
    columns = _keyed(union, computation)
    conditions = [_equal(computation, Aggregated("max", member), int(kind == "intersect"))]
    if kind == "intersect":
        conditions.append(_equal(computation, Aggregated("min", member), 0))
    return ProjectFlow(columns, _filtered(f"{name}.member", conditions, fold_flow(name, computation, union, place)))


def _equal(computation: Computation, call: Aggregated, number: int) -> exp.Expr:
    return exp.EQ(this=column(computation.call(call)), expression=exp.Literal.number(number))


def _filtered(name: str, conditions: Sequence[exp.Expr], flow: Flow) -> Flow:
    for number, condition in enumerate(conditions, start=1):
        flow = FilterFlow(f"{name}_{number}", condition, flow)
    return flow


def _keyed(flow: Flow, computation: Computation) -> list[tuple[str, exp.Expr]]:
    """The columns of a flow as keys; the start and the end of the window need not be keys."""
    bounds = flow.traits.bounds
    values = [(name, bounds.get(name.lower(), name)) for name in flow.traits.names]
    return [(name, column(own if own.startswith("__") else computation.key(column(own)))) for name, own in values]
