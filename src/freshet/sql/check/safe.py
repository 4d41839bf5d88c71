"""Expressions that give NULL where Spark in ANSI mode would raise, and the count of how often they do."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Final

from sqlglot import exp

from freshet.model.graph import QueryGraph
from freshet.sql.check.functions import name_of
from freshet.sql.check.try_forms import attempt, is_null, is_place
from freshet.sql.parse.errors import SqlError
from freshet.sql.parse.limits import MOST_LEVELS, MOST_PARTS, TOO_DEEP, TOO_MANY_PARTS, levels_of
from freshet.sql.parse.text import parse_expression, shared_expression, to_sql
from freshet.sql.parse.trees import call, rewritten


def safe(expression: str) -> str:
    """The expression with every part that can fail in its ``try_`` form.

    >>> safe("a / b > 2")
    'TRY_DIVIDE(a, b) > 2'
    >>> safe("CAST(s AS INT) + 1")
    'TRY_ADD(TRY_CAST(s AS INT), 1)'
    """
    return to_sql(_safe(parse_expression(expression)))


def error_count(expression: str) -> str:
    """An expression (int) that counts the evaluation errors of a row.

    An error is a part that is NULL though all its arguments are not. Parts count where they are evaluated: the
    branches of CASE, IF and COALESCE that are taken, the right side of AND and OR where the left does not decide.
    Parts inside a lambda are not counted.

    >>> error_count("a / b > 2")
    'IF(TRY_DIVIDE(a, b) IS NULL AND NOT a IS NULL AND NOT b IS NULL, 1, 0)'
    >>> error_count("a > 2")
    '0'
    """
    return to_sql(_total(_errors(parse_expression(expression))))


def _safe(tree: exp.Expr) -> exp.Expr:
    def tried(node: exp.Expr) -> exp.Expr | None:
        made = attempt(node)
        return None if made is None or is_place(node) else made.value

    return rewritten(tree.copy(), tried, children_first=True)


def _total(counts: list[exp.Expr]) -> exp.Expr:
    if not counts:
        return exp.Literal.number(0)
    return reduce(lambda left, right: exp.Add(this=left, expression=right), counts)


def _when(condition: exp.Expr, then: list[exp.Expr], otherwise: list[exp.Expr]) -> list[exp.Expr]:
    if not then and not otherwise:
        return []
    return [call("IF", condition, _total(then), _total(otherwise))]


def _errors(tree: exp.Expr) -> list[exp.Expr]:
    """Addends that together count the errors of a tree."""
    if isinstance(tree, exp.Lambda):
        return []
    if isinstance(tree, exp.And):
        undecided = call("COALESCE", _safe(tree.left), exp.true())
        return _errors(tree.left) + _when(undecided, _errors(tree.right), [])
    if isinstance(tree, exp.Or):
        decided = call("COALESCE", _safe(tree.left), exp.false())
        return _errors(tree.left) + _when(decided, [], _errors(tree.right))
    if isinstance(tree, exp.Case):
        return _case_errors(tree)
    lazy = _LAZY.get(name_of(tree) or "")
    if lazy is not None:
        return lazy(tree.expressions)
    below = [count for child in tree.iter_expressions() for count in _errors(child)]
    return below + _own_error(tree)


def _own_error(tree: exp.Expr) -> list[exp.Expr]:
    shell = tree.copy()
    for child in list(shell.iter_expressions()):
        if not is_place(child):
            child.replace(_safe(child))
    made = attempt(shell)
    if made is None:
        return []
    present = [exp.Not(this=is_null(part)) for part in made.arguments if not isinstance(part, exp.Literal)]
    fails = is_null(made.value) if made.fails is None else made.fails.copy()
    failed = exp.and_(fails, *present, copy=False, wrap=isinstance(fails, exp.Or))
    return [call("IF", failed, exp.Literal.number(1), exp.Literal.number(0))]


def _case_errors(tree: exp.Case) -> list[exp.Expr]:
    operand = tree.this
    default = tree.args.get("default")
    counts = _errors(default) if default is not None else []
    for branch in reversed(tree.args["ifs"]):
        test = exp.EQ(this=operand.copy(), expression=branch.this.copy()) if operand is not None else branch.this
        counts = _errors(branch.this) + _when(_safe(test), _errors(branch.args["true"]), counts)
    return (_errors(operand) if operand is not None else []) + counts


def _if_errors(arguments: list[exp.Expr]) -> list[exp.Expr]:
    condition, then, *otherwise = arguments
    below = _errors(otherwise[0]) if otherwise else []
    return _errors(condition) + _when(_safe(condition), _errors(then), below)


def _coalesce_errors(arguments: list[exp.Expr]) -> list[exp.Expr]:
    first, *rest = arguments
    below = _coalesce_errors(rest) if rest else []
    return _errors(first) + _when(is_null(_safe(first)), below, [])


def _nvl2_errors(arguments: list[exp.Expr]) -> list[exp.Expr]:
    tested, there, missing = arguments
    return _errors(tested) + _when(is_null(_safe(tested)), _errors(missing), _errors(there))


_LAZY = {
    "if": _if_errors,
    "coalesce": _coalesce_errors,
    "nvl": _coalesce_errors,
    "ifnull": _coalesce_errors,
    "nvl2": _nvl2_errors,
}


_REPEATED: Final[dict[str | type[exp.Expr], int]] = {
    exp.Neg: 2, exp.IntDiv: 3, exp.Bracket: 2, "abs": 2, "negative": 2, "mod": 2, "pmod": 2, "div": 3, "element_at": 4,
    "ceil": 5, "ceiling": 5, "floor": 5,
}  # fmt: skip
"""How often the arguments of a function or an operator occur in its safe form (:mod:`freshet.sql.check.try_forms`)."""


def check_growth(graph: QueryGraph) -> None:
    """Refuses a graph whose expressions become too large when each is put into those that use it and made safe."""
    sizes: dict[str, dict[str, tuple[int, int]]] = {}
    for name in graph.order:
        operator, before = graph.operators[name], sizes.get(graph.inputs[name][0], {})
        sizes[name] = {}
        if operator.makes is not None:
            sizes[name] = {column.lower(): _grown(shared_expression(text), before) for column, text in operator.makes}
        elif operator.keeps is not None:
            _grown(shared_expression(operator.keeps), before)
            sizes[name] = before


def _grown(tree: exp.Expr, sizes: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Parts and levels of an expression over columns that have some themselves."""
    nodes = list(levels_of(tree))
    parts: dict[int, int] = {}
    most = 0
    # Children come after their parents, so backwards they are counted before them.
    for node, levels in reversed(nodes):
        inner = sizes.get(node.name.lower(), (0, 0)) if isinstance(node, exp.Column) else (0, 0)
        below = inner[0] + sum(parts[id(child)] for child in node.iter_expressions())
        parts[id(node)] = 1 + below * _REPEATED.get(name_of(node) or type(node), 1)
        most = max(most, levels + inner[1])
    if parts[id(tree)] > MOST_PARTS:
        raise SqlError(TOO_MANY_PARTS)
    if most > MOST_LEVELS:
        raise SqlError(TOO_DEEP)
    return parts[id(tree)], most
