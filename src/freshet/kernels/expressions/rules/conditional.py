"""CASE, IF, COALESCE, NVL, NVL2 and NULLIF. As in Spark, errors count only in the parts that a row reaches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from freshet.kernels.expressions.arrow import decode
from freshet.kernels.expressions.conversion import convert
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import FunctionRule, Node, Rule, RuleScope, fixed, literal, quiet
from freshet.kernels.expressions.rules.comparisons import compare
from freshet.kernels.expressions.rules.logic import boolean, is_null, negation
from freshet.kernels.expressions.text import Text
from freshet.kernels.expressions.types import DTYPES, VOID, common_of
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Mask, Value, total, truth

Errors = npt.NDArray[np.int32] | None
Fill = Callable[[Sequence[Value | None], Sequence[Mask], int], Value]
"""Makes one column from the results (None: a literal) and the rows of each of them."""


def choose(word: str, branches: Sequence[tuple[Node, Node]], default: Node) -> Node:
    """The result of the first branch whose condition is true, or the default.

    Args:
        word: Its name in messages.
        branches: Conditions and results.
        default: The result if no condition is true.
    """
    results = [*(result for _, result in branches), default]
    kind = common_of(result.kind for result in results)
    if kind == VOID or any(result.kind == VOID and not result.is_constant for result in results):
        raise Unsupported(f"{word} of NULL alone")
    results = [convert(result, kind) for result in results]
    conditions = [boolean(condition, word) for condition, _ in branches]
    fill = _numbers(kind, results) if kind in DTYPES else _arrays(kind, results)

    def evaluate(frame: Frame) -> Value:
        places, errors = _places(conditions, frame)
        values = [None if result.is_constant else result(frame) for result in results]
        for value, place in zip(values, places, strict=True):
            if value is not None:
                errors = total(errors, _within(value.errors, place))
        made = fill(values, places, frame.rows)
        return Value(made.values, made.valid, errors, made.array)

    # The number of conditions distinguishes keys that would otherwise be alike: COALESCE(a, b), CASE WHEN a THEN b.
    parts = ",".join(node.key for node in (*conditions, *results))
    return Node(kind, f"CHOOSE{len(conditions)}({parts})", evaluate, (*conditions, *results), 3.0 * len(results))


def _places(conditions: Sequence[Node], frame: Frame) -> tuple[list[Mask], Errors]:
    """The rows of each result, with those of the default last, and the errors of the conditions that were reached."""
    places: list[Mask] = []
    errors: Errors = None
    rest = np.ones(frame.rows, np.bool_)
    for condition in conditions:
        value = condition(frame)
        errors = total(errors, _within(value.errors, rest))
        hit = rest & truth(value)
        rest = rest & ~hit
        places.append(hit)
    return [*places, rest], errors


def _within(errors: Errors, place: Mask) -> Errors:
    return None if errors is None else np.where(place, errors, np.int32(0))


def _numbers(kind: pa.DataType, results: Sequence[Node]) -> Fill:
    dtype = DTYPES[kind]

    def fill(values: Sequence[Value | None], places: Sequence[Mask], rows: int) -> Value:
        made, valid = np.zeros(rows, dtype), None
        for node, value, place in zip(results, values, places, strict=True):
            known: Any = None
            if value is None and node.is_null:
                known = ~place
            else:
                np.copyto(made, node.constant if value is None else value.values, where=place)
                if value is not None and value.valid is not None:
                    known = value.valid | ~place
            if known is not None:
                valid = known if valid is None else valid & known
        return Value(made, valid)

    return fill


def _arrays(kind: pa.DataType, results: Sequence[Node]) -> Fill:
    constants = [pa.scalar(node.constant, kind) if node.is_constant else None for node in results]

    def fill(values: Sequence[Value | None], places: Sequence[Mask], rows: int) -> Value:
        arrays = [one if value is None else _array(value) for one, value in zip(constants, values, strict=True)]
        made = arrays[-1]
        for array, place in zip(arrays[-2::-1], places[-2::-1], strict=True):
            made = pc.if_else(pa.array(place), array, made)
        return decode(made)

    return fill


def _array(value: Value) -> pa.Array:
    return value.values.array if isinstance(value.values, Text) else value.values


def coalesce(nodes: Sequence[Node]) -> Node:
    """The first argument that is not NULL."""
    return choose("COALESCE", [(negation(is_null(node)), quiet(node)) for node in nodes[:-1]], nodes[-1])


def _case_rule(scope: RuleScope, expression: exp.Case) -> Node:
    branches, default = expression.args["ifs"], expression.args.get("default")
    results = [scope.compile(branch.args["true"]) for branch in branches]
    otherwise = literal(VOID, None) if default is None else scope.compile(default)
    return choose("CASE", list(zip(_conditions(scope, expression), results, strict=True)), otherwise)


def _conditions(scope: RuleScope, expression: exp.Case) -> list[Node]:
    nodes = [scope.compile(branch.this) for branch in expression.args["ifs"]]
    if expression.this is None:
        return nodes
    operand = scope.compile(expression.this)
    return [compare(scope, "=", operand if number == 0 else quiet(operand), node) for number, node in enumerate(nodes)]


def _if(scope: RuleScope, nodes: Sequence[Node]) -> Node:
    if len(nodes) not in (2, 3):
        raise Unsupported("IF without two or three arguments")
    return choose("IF", [(nodes[0], nodes[1])], nodes[2] if len(nodes) == 3 else literal(VOID, None))


def _coalesce(scope: RuleScope, nodes: Sequence[Node]) -> Node:
    if not nodes:
        raise Unsupported("COALESCE without arguments")
    return coalesce(nodes) if len(nodes) > 1 else nodes[0]


def _nvl2(tested: Node, there: Node, missing: Node) -> Node:
    return choose("NVL2", [(negation(is_null(tested)), there)], missing)


def _null_if(scope: RuleScope, nodes: Sequence[Node]) -> Node:
    """NULL where both are equal."""
    if len(nodes) != 2:
        raise Unsupported("NULLIF without two arguments")
    node, other = nodes
    return choose("NULLIF", [(compare(scope, "=", node, other), literal(VOID, None))], quiet(node))


RULES: Final[dict[type[exp.Expression], Rule]] = {exp.Case: _case_rule}
FUNCTIONS: Final[dict[str, FunctionRule]] = {
    "if": _if,
    "coalesce": _coalesce,
    "nvl": fixed(2, lambda *nodes: coalesce(nodes)),
    "ifnull": fixed(2, lambda *nodes: coalesce(nodes)),
    "nvl2": fixed(3, _nvl2),
    "nullif": _null_if,
}
