"""From the text of an expression to its node: one rule per type of sqlglot's expressions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa
import sqlglot
from sqlglot import exp

from freshet.kernels import arithmetic, comparisons, literals, logic, membership, references
from freshet.kernels.node import Node, Rule
from freshet.kernels.unsupported import Unsupported

RULES: Final[dict[type[exp.Expression], Rule]] = {
    **references.RULES,
    **literals.RULES,
    **comparisons.RULES,
    **logic.RULES,
    **arithmetic.RULES,
    **membership.RULES,
}


_SAME_ESCAPES: Final = re.compile(r"\\[\\'\"nt]")
"""Escapes in strings that Spark and sqlglot read alike."""


class Compiler:
    """Compiles expressions over the columns of one frame. Equal parts become one node, evaluated once per frame.

    >>> compiler = Compiler([("k", pa.int32()), ("v", pa.float64())])
    >>> str(compiler.text("k + v").kind)
    'double'
    >>> compiler.text("upper(k) = 'X'")
    Traceback (most recent call last):
    freshet.kernels.unsupported.Unsupported: UPPER
    """

    def __init__(self, columns: Sequence[tuple[str, pa.DataType]]) -> None:
        self.text_tests: Counter[int] = Counter()
        self._columns = [_column(number, kind) for number, (_, kind) in enumerate(columns)]
        self._names = [name.lower() for name, _ in columns]
        self._nodes: dict[str, Node] = {}

    def text(self, text: str) -> Node:
        """The node of an expression's text."""
        return self.compile(_parse(text))

    def compile(self, expression: exp.Expression) -> Node:
        """The node of an expression."""
        rule = RULES.get(type(expression))
        if rule is None:
            raise Unsupported(_label(expression))
        return self._intern(rule(self, expression))

    def resolve(self, name: str) -> Node:
        """The node of a column; as in Spark, case does not matter."""
        wanted = name.lower()
        if self._names.count(wanted) != 1:
            raise Unsupported(f"column {name} is {'not there' if wanted not in self._names else 'ambiguous'}")
        return self._columns[self._names.index(wanted)]

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
        parsed = sqlglot.parse_one(text, dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        raise Unsupported(f"sqlglot cannot read {text!r}: {str(error).splitlines()[0]}") from None
    assert isinstance(parsed, exp.Expression)
    return parsed


def _label(expression: exp.Expression) -> str:
    return expression.sql_name() if isinstance(expression, exp.Func) else type(expression).__name__.upper()
