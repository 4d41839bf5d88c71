"""The typed form of an expression between its text and its evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from sqlglot import exp

from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.text import Text
from freshet.kernels.expressions.types import DTYPES, STRING
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Value
from freshet.kernels.superbox.lookup import NumberSets, TextTests

Evaluate = Callable[[Frame], Value]

VARIABLE: Final = object()
"""Marks a node that is no constant (None would mean NULL)."""

GATHER_COST: Final = 3.0
"""Cost of gathering one value of a surviving row, where comparing one number costs 1."""


class Node:
    """An expression with its Spark type, ready to be evaluated over frames.

    Args:
        kind: Its type.
        key: Equal for equal expressions over the same columns.
        evaluate: Computes it.
        inputs: The nodes that it is made of.
        cost: Its own cost per row, without its inputs; comparing one number costs 1.
        constant: Its value if it is a literal (None is NULL).
        column: Its number if it is a column.
    """

    __slots__ = ("column", "columns", "constant", "cost", "evaluate", "key", "kind", "shared")

    def __init__(
        self,
        kind: pa.DataType,
        key: str,
        evaluate: Evaluate,
        inputs: Sequence[Node] = (),
        cost: float = 1.0,
        constant: Any = VARIABLE,
        column: int | None = None,
    ) -> None:
        self.kind = kind
        self.key = key
        self.evaluate = evaluate
        self.columns: frozenset[int] = frozenset().union(*(node.columns for node in inputs))
        if column is not None:
            self.columns = frozenset((column,))
        self.cost: float = cost + sum(node.cost for node in inputs)
        self.constant = constant
        self.column = column
        self.shared = False

    @property
    def is_constant(self) -> bool:
        """Whether it is a literal, NULL included."""
        return self.constant is not VARIABLE

    @property
    def is_null(self) -> bool:
        """Whether it is the literal NULL."""
        return self.constant is None

    def __call__(self, frame: Frame) -> Value:
        """Its value over a frame, computed only once per frame if several places use it."""
        if not self.shared:
            return self.evaluate(frame)
        value = frame.cache.get(self.key)
        if value is None:
            value = frame.cache[self.key] = self.evaluate(frame)
        return value

    def prefers_survivors(self, survivors: int, rows: int) -> bool:
        """Whether gathering the survivors' columns and computing only there is cheaper than computing everywhere."""
        if self.shared:
            return False
        return (self.cost + GATHER_COST * len(self.columns)) * survivors < self.cost * rows


class RuleScope(Protocol):
    """What rules see of the compiler."""

    text_tests: Counter[int]
    """How many tests against literals there are on each column of text."""

    def tests_of(self, column: int) -> TextTests:
        """The tests of a column of text that are done together."""

    def sets_of(self, node: Node) -> NumberSets:
        """The sets of numbers that a node is tested against together."""

    def compile(self, expression: exp.Expression) -> Node:
        """The node of a part of the expression."""

    def resolve(self, name: str) -> Node:
        """The node of a column."""


Rule = Callable[[RuleScope, Any], Node]
"""Compiles one type of sqlglot's expressions."""

FunctionRule = Callable[[RuleScope, Sequence[Node]], Node]
"""Compiles the call of a function, given its arguments."""


def fixed(count: int, function: Callable[..., Node]) -> FunctionRule:
    """A function of exactly ``count`` arguments, which it gets one by one."""

    def call(scope: RuleScope, nodes: Sequence[Node]) -> Node:
        if len(nodes) != count:
            raise Unsupported(f"a function of {count} with {len(nodes)} arguments")
        return function(*nodes)

    return call


def reuse(node: Node) -> Node:
    """The node, marked because it will be evaluated a second time over the same frame."""
    node.shared = not node.is_constant and node.column is None
    return node


def quiet(node: Node) -> Node:
    """The node without its errors, for a second use: the first use counts them."""
    if not reuse(node).shared:
        return node

    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        return value if value.errors is None else Value(value.values, value.valid)

    return Node(node.kind, f"quiet({node.key})", evaluate, (node,), 0.0)


def literal(kind: pa.DataType, constant: Any) -> Node:
    """The node of a literal; evaluated on its own, it fills a column.

    >>> literal(pa.int32(), 7)(Frame(2, [])).values.tolist()
    [7, 7]
    """
    dtype = DTYPES.get(kind)

    def fill(frame: Frame) -> Value:
        if dtype is None:
            array = pa.repeat(pa.scalar(constant, kind), frame.rows)
            return Value(Text(array) if kind == STRING else array)
        if constant is None:
            return Value(np.zeros(frame.rows, dtype), np.zeros(frame.rows, np.bool_))
        return Value(np.full(frame.rows, constant, dtype))

    def nothing(frame: Frame) -> Value:
        array = pa.nulls(frame.rows, kind)
        return Value(Text(array) if kind == STRING else array, np.zeros(frame.rows, np.bool_))

    evaluate = nothing if dtype is None and constant is None else fill
    return Node(kind, f"{kind}:{constant!r}", evaluate, (), 0.0, constant)
