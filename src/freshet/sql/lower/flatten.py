"""A chain of filters and projections as predicates and columns over the chain's own input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from freshet.model.operators import Operator
from freshet.model.schema import ARRIVAL
from freshet.sql.parse.errors import SqlError
from freshet.sql.parse.text import column, parse_expression, to_sql
from freshet.sql.parse.trees import inline


@dataclass(frozen=True, slots=True)
class Flat:
    """A chain in terms of its input columns: a predicate for each filter, and its output as ``(name, expression)``."""

    predicates: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]


def flatten(operators: Sequence[Operator], columns: Sequence[str]) -> Flat:
    """Puts every projection into what comes after it; without one, a chain gives out its input columns unchanged.

    >>> from freshet.model import Filter, Project
    >>> flatten([Project("q.sub.project", (("w", "v + 1"),)), Filter("q.filter_1", "w * 2 > 10")], ["k", "v"])
    Flat(predicates=('(v + 1) * 2 > 10',), columns=(('w', 'v + 1'),))
    """
    present = {name.lower(): (name, column(name)) for name in columns if name != ARRIVAL}
    predicates = []
    for operator in operators:
        values = {key: value for key, (_, value) in present.items()}
        if operator.keeps is not None:
            predicates.append(to_sql(_inline(operator.keeps, values, operator.name)))
        if operator.makes is not None:
            present = {name.lower(): (name, _inline(text, values, operator.name)) for name, text in operator.makes}
    return Flat(tuple(predicates), tuple((name, to_sql(value)) for name, value in present.values()))


def _inline(text: str, values: Mapping[str, exp.Expr], operator: str) -> exp.Expr:
    tree = parse_expression(text)
    for node in tree.find_all(exp.Column):
        if node.name.lower() not in values and node.name.lower() != ARRIVAL:
            raise SqlError(f"{operator} reads column {node.name}, which is not there (there: {', '.join(values)})")
    return inline(tree, values)
