"""From the text of an expression to its node: one rule per type of sqlglot's expressions and per function."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Final

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from freshet.kernels.expressions.node import FunctionRule, Node, Rule
from freshet.kernels.expressions.rules import (
    arithmetic,
    casts,
    comparisons,
    conditional,
    intervals,
    literals,
    logic,
    mathematics,
    membership,
    patterns,
    references,
    strings,
    times,
)
from freshet.kernels.expressions.rules.own import own_call
from freshet.kernels.expressions.types import DTYPES
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.superbox.lookup import SHARED_COST, TOGETHER, NumberSets, TextTests
from freshet.model.functions import known_function
from freshet.model.schema import WEIGHT
from freshet.sql.parse.dialect import Freshet

RULES: Final[dict[type[exp.Expression], Rule]] = {
    **references.RULES,
    **literals.RULES,
    **comparisons.RULES,
    **logic.RULES,
    **arithmetic.RULES,
    **membership.RULES,
    **conditional.RULES,
    **casts.RULES,
    **intervals.RULES,
    **mathematics.RULES,
    **strings.RULES,
    **patterns.RULES,
}
"""By type of sqlglot's expressions."""

FUNCTIONS: Final[dict[str, FunctionRule]] = {
    **conditional.FUNCTIONS,
    **casts.FUNCTIONS,
    **mathematics.FUNCTIONS,
    **strings.FUNCTIONS,
    **times.FUNCTIONS,
}
"""By the name of a function in lower case."""

_ENCODE_FROM: Final = 4
"""Minimum number of tests of a text column that make a dictionary worthwhile."""

_SAME_ESCAPES: Final = re.compile(r"\\[\\'\"nt]")
"""Escapes in strings that Spark and sqlglot read alike."""


class Compiler:
    """Compiles expressions over the columns of one frame. Equal parts become one node, evaluated once per frame.

    >>> compiler = Compiler([("k", pa.int32()), ("v", pa.float64())])
    >>> str(compiler.text("k + v").kind)
    'double'
    >>> compiler.text("sha1(k) = 'X'")
    Traceback (most recent call last):
    freshet.kernels.expressions.unsupported.Unsupported: function sha1
    """

    def __init__(self, columns: Sequence[tuple[str, pa.DataType]]) -> None:
        self.text_tests: Counter[int] = Counter()
        self._columns = [_column(number, kind) for number, (_, kind) in enumerate(columns)]
        self._names = [name.lower() for name, _ in columns]
        self._nodes: dict[str, Node] = {}
        self._tests: dict[int, TextTests] = {}
        self._sets: dict[str, NumberSets] = {}

    def text(self, text: str) -> Node:
        """The node of an expression's text."""
        return self.compile(_parse(text))

    def compile(self, expression: exp.Expression) -> Node:
        """The node of an expression."""
        if isinstance(expression, exp.Anonymous):
            return self._intern(self._call(expression))
        rule = RULES.get(type(expression))
        if rule is None:
            raise Unsupported(_label(expression))
        return self._intern(rule(self, expression))

    def _call(self, expression: exp.Anonymous) -> Node:
        name = expression.name.lower()
        own = known_function(name)
        function = FUNCTIONS.get(name) if own is None else partial(own_call, own)
        if function is None:
            raise Unsupported(f"function {name}")
        return function(self, [self.compile(argument) for argument in expression.expressions])

    def resolve(self, name: str) -> Node:
        """The node of a column; as in Spark, case does not matter."""
        wanted = name.lower()
        if wanted == WEIGHT and wanted not in self._names:
            return self.text("CAST(1 AS DOUBLE)")  # nothing was left out
        if self._names.count(wanted) != 1:
            raise Unsupported(f"column {name} is {'not there' if wanted not in self._names else 'ambiguous'}")
        return self._columns[self._names.index(wanted)]

    def tests_of(self, column: int) -> TextTests:
        """The tests of a column of text that are done together."""
        return self._tests.setdefault(column, TextTests())

    def sets_of(self, node: Node) -> NumberSets:
        """The sets of numbers that a node is tested against together."""
        return self._sets.setdefault(node.key, NumberSets(node.key, DTYPES[node.kind]))

    def settle(self) -> frozenset[int]:
        """Ends the compilation; returns the columns of text that are worth a dictionary.

        Tests that are done together cost one bit per row, so none of them waits until there are few survivors.
        """
        encoded = frozenset(column for column, count in self.text_tests.items() if count >= _ENCODE_FROM)
        together: list[TextTests | NumberSets] = [self._tests[column] for column in encoded if column in self._tests]
        together += [sets for sets in self._sets.values() if len(sets) >= TOGETHER]
        for tests in together:
            for node in tests.nodes:
                node.cost = SHARED_COST
        self.release()
        return encoded

    def release(self) -> None:
        """Drops references that are only needed while compiling and would form cycles with the nodes."""
        for tests in self._tests.values():
            tests.nodes.clear()
        for sets in self._sets.values():
            sets.nodes.clear()

    def _intern(self, node: Node) -> Node:
        if node.column is not None or node.is_constant:
            return node
        known = self._nodes.setdefault(node.key, node)
        if known is not node:
            known.shared = True
        return known


def _column(number: int, kind: pa.DataType) -> Node:
    return Node(kind, f"c{number}", lambda frame: frame.column(number), (), 0.0, column=number)


@lru_cache(maxsize=65536)
def _parse(text: str) -> exp.Expression:
    if "\\" in _SAME_ESCAPES.sub("", text):
        raise Unsupported("a backslash in a string")
    try:
        [tree] = Freshet().parse(text)
    except (SqlglotError, ValueError) as error:
        raise Unsupported(f"sqlglot cannot read {text!r}: {str(error).splitlines()[0]}") from None
    assert isinstance(tree, exp.Expression)
    return tree


def _label(expression: exp.Expression) -> str:
    return expression.sql_name() if isinstance(expression, exp.Func) else type(expression).__name__.upper()
