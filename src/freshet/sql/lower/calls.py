"""Aggregate calls as folds know them: a function over a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, get_args

from sqlglot import exp

from freshet.model.operators import AggregateFunction
from freshet.sql.check.functions import has_aggregate, is_aggregate, name_of
from freshet.sql.parse.errors import fail

AGGREGATES: Final[dict[str, AggregateFunction]] = {
    **{function: function for function in get_args(AggregateFunction) if function != "count_distinct"},
    "count_if": "count",
    "mean": "avg",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "variance": "var_samp",
    "percentile_approx": "approx_percentile",
}
"""The aggregates that are computed over windows, by the names that users write."""


@dataclass(frozen=True, slots=True)
class Aggregated:
    """A function over the values of an argument (None: ``count(*)``), for ``approx_percentile`` with its share."""

    function: AggregateFunction
    argument: exp.Expr | None
    parameter: float | None = None


def is_call(tree: exp.Expr) -> bool:
    """Whether a node is an aggregate, with or without FILTER."""
    return is_aggregate(tree.this if isinstance(tree, exp.Filter) else tree)


def read_call(tree: exp.Expr) -> Aggregated:
    """The call of a node; FILTER becomes a part of the argument.

    Raises:
        SqlError: Windows do not have such an aggregate; the message says which they have.
    """
    if isinstance(tree, exp.Filter):
        if has_aggregate(tree.expression):
            raise fail("FILTER takes a condition on one tuple, which has no aggregates", tree.expression)
        inner = read_call(tree.this)
        return Aggregated(inner.function, when(tree.expression.this, inner.argument), inner.parameter)
    name, arguments = name_of(tree) or "", list(tree.expressions)
    if name not in AGGREGATES:
        known = ", ".join(sorted(AGGREGATES))
        raise fail(f"{name}() is not computed over windows; there are {known}", tree)
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        return _distinct(tree, name, arguments[0].expressions)
    if name in ("approx_percentile", "percentile_approx"):
        return _percentile(tree, arguments)
    if name == "count":
        return Aggregated("count", _counted(tree, arguments))
    if len(arguments) != 1 or isinstance(arguments[0], exp.Star):
        raise fail(f"{name}() takes one argument", tree)
    argument = when(arguments[0], None) if name == "count_if" else arguments[0]
    return Aggregated(AGGREGATES[name], argument)


def _distinct(tree: exp.Expr, name: str, values: list[exp.Expr]) -> Aggregated:
    if name in ("min", "max") and len(values) == 1:
        return Aggregated(AGGREGATES[name], values[0])
    if name != "count" or len(values) != 1 or isinstance(values[0], exp.Star):
        raise fail("DISTINCT works only in count with one value, as in count(DISTINCT x)", tree)
    return Aggregated("count_distinct", values[0])


def _counted(tree: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr | None:
    if not arguments:
        raise fail("count() takes * or a value: count(*)", tree)
    if len(arguments) == 1:
        only = arguments[0]
        return None if isinstance(only, exp.Star | exp.Literal) else only
    return when(exp.and_(*(exp.Not(this=exp.Is(this=each.copy(), expression=exp.Null())) for each in arguments)), None)


def _percentile(tree: exp.Expr, arguments: list[exp.Expr]) -> Aggregated:
    share = arguments[1].name if len(arguments) in (2, 3) and isinstance(arguments[1], exp.Literal) else ""
    is_share = share.replace(".", "", 1).isdigit() and 0.0 <= float(share) <= 1.0
    if not is_share or (len(arguments) == 3 and not isinstance(arguments[2], exp.Literal)):
        raise fail("the form is approx_percentile(x, 0.95), with a share from 0 to 1", tree)
    return Aggregated("approx_percentile", arguments[0], float(share))


def when(condition: exp.Expr, value: exp.Expr | None) -> exp.Expr:
    """The value where the condition is true, else NULL; without a value 1, which is there to be counted."""
    then = exp.Literal.number(1) if value is None else value.copy()
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=then)])
