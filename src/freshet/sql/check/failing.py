"""What a user is told of evaluation errors that failed a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from sqlglot import exp

from freshet.model import Operator
from freshet.model.functions import is_tried, readable
from freshet.model.messages import counted
from freshet.sql.check.functions import name_of
from freshet.sql.check.safe import error_count
from freshet.sql.parse.text import parse_expression, to_sql

_NAMED: Final = 3
"""Number of expressions that a reason names."""


def why_failed(errors: int, rows: int, operators: Sequence[Operator], raised: str = "") -> str:
    """The reason of a query that is declared with ``on_error = "fail"``.

    Args:
        errors: Number of its evaluation errors.
        rows: Number of tuples among which they were.
        operators: The operators that had them.
        raised: What a function of the user's own raised among them; empty: nothing.

    >>> from freshet.model import Filter, Project
    >>> why_failed(1, 8, [Filter("f", "k > 1"), Project("p", (("r", "k / n"), ("k", "k")))])
    '1 evaluation error in 8 tuples (on_error = fail) in k / n'
    >>> why_failed(2, 8, [Filter("f", "k / n > 1"), Project("p", (("r", "CAST(s AS INT)"),))])
    '2 evaluation errors in 8 tuples (on_error = fail) in one or more of: k / n > 1; CAST(s AS INT)'
    >>> why_failed(2, 8, [Filter("f", "f(k) > 1")], "function f raised ValueError: too large")
    '2 evaluation errors in 8 tuples (on_error = fail): function f raised ValueError: too large'
    """
    told = f"{counted(errors, 'evaluation error')} in {counted(rows, 'tuple')} (on_error = fail)"
    if raised:
        return f"{told}: {raised}"
    found = [*dict.fromkeys(readable(text) for operator in operators for text in _fallible(operator))]
    if len(found) > 1:
        more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        return f"{told} in one or more of: {'; '.join(found[:_NAMED])}{more}"
    return f"{told} in {found[0]}" if found else told


def what_raised(count: str) -> list[str]:
    """What the calls of the user's own functions raised in whose values an :func:`~freshet.sql.error_count` counts
    errors: for each call an expression, which is NULL if the call did not raise.

    >>> what_raised(error_count("a / b"))
    []
    """
    fields = (node for node in parse_expression(count).find_all(exp.Dot) if node.name == "raised")
    return [*dict.fromkeys(to_sql(node) for node in fields if is_tried(name_of(node.this)))]


def _fallible(operator: Operator) -> Iterator[str]:
    """The expressions of an operator that can have errors. Of one that folds or joins rows, it is the whole operator:
    sums may fail, too."""
    if not operator.plain:
        yield operator.text()
        return
    yield from _can_fail(operator.expressions)


def _can_fail(texts: Iterable[str]) -> Iterator[str]:
    return (text for text in texts if error_count(text).strip("()") != "0")
