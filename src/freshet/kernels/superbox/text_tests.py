"""Predicates of text against literals; all tests of one column are done together."""

from __future__ import annotations

from typing import Final

from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import Node, RuleScope
from freshet.kernels.expressions.text import TextTest
from freshet.kernels.expressions.types import BOOLEAN
from freshet.kernels.expressions.value import Value

TEXT_COST: Final = 15.0
"""Cost of comparing a string, where comparing one number costs 1."""


def text_test(scope: RuleScope, key: str, node: Node, test: TextTest) -> Node:
    """The rows of text for which an Arrow predicate is true; NULL where the text is NULL."""
    if node.column is None:

        def evaluate(frame: Frame) -> Value:
            value = node(frame)
            return Value(value.values.test(test), value.valid, value.errors)

        return Node(BOOLEAN, key, evaluate, (node,), TEXT_COST)
    scope.text_tests[node.column] += 1
    tests = scope.tests_of(node.column)
    slot = tests.add(key, test)

    def find(frame: Frame) -> Value:
        value = node(frame)
        return Value(tests.find(value.values, slot), value.valid, value.errors)

    made = Node(BOOLEAN, key, find, (node,), TEXT_COST)
    tests.nodes.append(made)
    return made
