"""How large a query may be, so that everything that looks at it ends soon and fits on the stack.

The limits are far above what people write and what most programs write. They are stated in ``docs/windows.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Final

from sqlglot import exp

from freshet.sql.parse.errors import fail

MOST_CHARACTERS: Final = 200_000
"""Characters of a query's text."""
MOST_WORDS: Final = 20_000
"""Words and signs of a query's text."""
MOST_BRACKETS: Final = 32
"""Maximum depth of nested parentheses and brackets."""
MOST_LEVELS: Final = 100
"""Levels of an expression; a chain of AND or of OR has few, any other operator adds one."""
MOST_PARTS: Final = 20_000
"""Columns, constants and operators of an expression with aliases and sub-queries put in and errors guarded against."""
MOST_OPERATORS: Final = 2_000
"""Operators that are made of a query."""
MOST_MEMBERS: Final = 64
"""Streams, queries, tables and sub-queries of one FROM."""
MOST_FILTERS: Final = 64
"""Conditions of a WHERE that become filters of their own; the last of them holds what is left."""

TOO_DEEP: Final = (
    f"the query is nested too deeply: at most {MOST_BRACKETS} nested parentheses and {MOST_LEVELS} operators or "
    "calls within each other; compute a part in a query before it"
)
TOO_MANY_PARTS: Final = (
    f"an expression has more than {MOST_PARTS:,} parts when aliases and sub-queries are put in and errors are "
    "guarded against: compute a part in a query before it"
)
TOO_MANY_OPERATORS: Final = f"the query needs more than {MOST_OPERATORS:,} operators: divide it into several queries"

# From here on a chain of conditions is worth another shape.
_LONG_CHAIN: Final = 16
_AROUND: Final = (exp.Query, exp.From, exp.Join, exp.With, exp.CTE, exp.Table)


def balance(tree: exp.Expr) -> None:
    """Gives long chains of AND and OR few levels; their text, their order and their meaning stay the same.

    >>> from freshet.sql.parse.dialect import Freshet
    >>> (tree,) = Freshet().parse(" AND ".join(f"k <> {i}" for i in range(1000)))
    >>> max(node.depth for node in tree.walk()), tree.sql() == " AND ".join(f"k <> {i}" for i in range(1000))
    (12, True)
    """
    for node in list(tree.find_all(exp.And, exp.Or)):
        if type(node.parent) is type(node):
            continue
        operands = list(node.flatten(unnest=False))
        if len(operands) >= _LONG_CHAIN:
            while len(operands) > 2:
                pairs = zip_longest(operands[::2], operands[1::2])
                operands = [one if two is None else type(node)(this=one, expression=two) for one, two in pairs]
            node.set("this", operands[0])
            node.set("expression", operands[1])


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """The conditions that an AND joins, in order.

    >>> from freshet.sql.parse.text import parse_expression, to_sql
    >>> [to_sql(part) for part in conjuncts(parse_expression("a AND (b AND c) AND (d OR e)"))]
    ['a', 'b', 'c', 'd OR e']
    """
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop().unnest()
        if isinstance(node, exp.And):
            waiting += [node.right, node.left]
        else:
            found.append(node)
    return found


def as_filters(conditions: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The filters that conditions become, at most :data:`MOST_FILTERS`: the last one holds what is left."""
    if len(conditions) <= MOST_FILTERS:
        return list(conditions)
    last = exp.and_(*conditions[MOST_FILTERS - 1 :], copy=False)
    balance(last)
    return [*conditions[: MOST_FILTERS - 1], last]


def check_levels(tree: exp.Expr) -> None:
    """Refuses expressions with too many levels; what is around them (sub-queries, joins) does not count."""
    for node, levels in levels_of(tree):
        if levels > MOST_LEVELS:
            raise fail(TOO_DEEP, node)


def levels_of(tree: exp.Expr) -> Iterable[tuple[exp.Expr, int]]:
    """The nodes of a tree, parents first, each with its level; what is around expressions has level 0."""
    waiting = [(tree, 0)]
    while waiting:
        node, above = waiting.pop()
        levels = 0 if isinstance(node, _AROUND) else above + 1
        yield node, levels
        waiting += [(child, levels) for child in node.iter_expressions()]


def parts_of(tree: exp.Expr) -> int:
    """How many columns, constants and operators an expression has."""
    return sum(1 for _ in tree.walk())
