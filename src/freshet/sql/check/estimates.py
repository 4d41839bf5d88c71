"""Estimates of what all tuples would have given, and their error bounds, where some are left out under overload.

A tuple is kept by a hash of its own, so what is kept is a Bernoulli sample. Each tuple stands for as many as its
*weight* says, 1 over the share that was kept of its train: so an answer may be made of trains, or panes, of which
different shares were kept. A bound is z standard deviations (D. G. Horvitz and D. J. Thompson, "A generalization of
sampling without replacement from a finite universe", 1952; RT §5.2.2 has the quality of an answer).
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import Final

from sqlglot import exp

from freshet.model.schema import WEIGHT
from freshet.sql.check.functions import name_of
from freshet.sql.lower.calls import is_call, read_call, when
from freshet.sql.parse.errors import fail
from freshet.sql.parse.text import parse_expression

ESTIMATES: Final = frozenset(["estimate", "error_bound"])
"""Functions of an aggregate."""
_USUAL: Final = 0.95
_VALUES: Final = {
    ("estimate", "count"): "coalesce(sum({weight}), 0.0D)",
    ("estimate", "sum"): "sum({weight} * {value})",
    ("estimate", "avg"): "sum({weight} * {value}) / sum({weight})",
    ("error_bound", "count"): "coalesce(sqrt(sum({excess})) * {z}, 0.0D)",
    ("error_bound", "sum"): "sqrt(sum({excess} * {value} * {value})) * {z}",
    # The average is a ratio: what is off is how far each value lies from it.
    ("error_bound", "avg"): "sqrt(greatest(0.0D, sum({excess} * {value} * {value}) - 2 * (sum({weight} * {value}) / "
    "sum({weight})) * sum({excess} * {value}) + (sum({weight} * {value}) / sum({weight})) * (sum({weight} * {value}) / "
    "sum({weight})) * sum({excess}))) / sum({weight}) * {z}",
}  # fmt: skip


def estimated(node: exp.Expr) -> exp.Expr | None:
    """What an estimate is made of: aggregates over weights; None: the node is no estimate.

    >>> from freshet.sql.parse.text import to_sql
    >>> to_sql(estimated(parse_expression("estimate(sum(v))")))
    'SUM(CASE WHEN NOT v IS NULL THEN __weight END * CAST(v AS DOUBLE))'
    """
    name = name_of(node)
    if name not in ESTIMATES:
        return None
    arguments = list(node.expressions)
    if not arguments or len(arguments) > (2 if name == "error_bound" else 1) or not is_call(arguments[0]):
        form = "error_bound(sum(x)), or error_bound(sum(x), 0.99)" if name == "error_bound" else "estimate(sum(x))"
        raise fail(f"{name}() takes count, sum or avg: the form is {form}", node)
    call = read_call(arguments[0])
    text = _VALUES.get((name, call.function))
    if text is None:
        raise fail(f"{name}() knows count, sum and avg, not {call.function}", arguments[0])
    weight: exp.Expr = exp.column(WEIGHT)
    excess: exp.Expr = exp.Paren(this=parse_expression(f"{WEIGHT} * ({WEIGHT} - 1)"))
    value = exp.Null() if call.argument is None else exp.Cast(this=call.argument, to=exp.DataType.build("double"))
    if call.argument is not None:
        there = exp.Not(this=exp.Is(this=call.argument.copy(), expression=exp.Null()))
        weight, excess = (when(there, each) for each in (weight, excess))
    confidence = _confidence(arguments[1]) if len(arguments) > 1 else _USUAL
    z = exp.Literal.number(repr(NormalDist().inv_cdf((1.0 + confidence) / 2.0)))
    return _filled(text, {"weight": weight, "excess": excess, "value": value, "z": z})


def _confidence(tree: exp.Expr) -> float:
    share = float(tree.name) if isinstance(tree, exp.Literal) and not tree.is_string else 0.0
    if not 0.0 < share < 1.0:
        raise fail("the second argument of error_bound() is the share of cases in which it holds, such as 0.95", tree)
    return share


def _filled(text: str, parts: Mapping[str, exp.Expr]) -> exp.Expr:
    names = {name: f"__{name}_part" for name in parts}
    tree = parse_expression(text.format(**names))
    by_name = {names[name]: part for name, part in parts.items()}
    return tree.transform(lambda node: by_name[node.name].copy() if node.name in by_name and _is_column(node) else node)


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column)
