"""LIKE with a literal pattern: a test of the beginning, the end or a part if that is enough, else a regex."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from freshet.kernels.expressions.node import Node, Rule, RuleScope
from freshet.kernels.expressions.rules.logic import negation
from freshet.kernels.expressions.types import STRING, name
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.superbox.text_tests import text_test

MANY: Final = "%"
ONE: Final = "_"
PatternToken = tuple[str, bool]
"""Characters, and whether they are a wildcard."""


def tokens(pattern: str, escape: str) -> list[PatternToken]:
    """The literal pieces and wildcards of a pattern.

    >>> tokens("a!%b%", "!")
    [('a%b', False), ('%', True)]
    """
    pieces: list[PatternToken] = []
    characters = iter(pattern)
    for character in characters:
        wild = character in (MANY, ONE) and character != escape
        if character == escape:
            character = next(characters, "")
            # Spark treats this as an error in the query, and reports it itself.
            if character not in (MANY, ONE, escape):
                raise Unsupported("LIKE with an escape of an ordinary character")
        if pieces and not wild and not pieces[-1][1]:
            pieces[-1] = (pieces[-1][0] + character, False)
        else:
            pieces.append((character, wild))
    return pieces


_SIMPLE: Final = {
    "": pc.equal, "x": pc.equal, "x%": pc.starts_with, "%x": pc.ends_with, "%x%": pc.match_substring,
    "%": pc.starts_with,
}  # fmt: skip
"""By the shape of a pattern, in which x stands for literal characters."""


def matcher(pattern: str, escape: str = "\\") -> Callable[[pa.Array], pa.Array]:
    """The test of an array of strings.

    >>> matcher("a%")(pa.array(["ab", "ba", None])).to_pylist()
    [True, False, None]
    """
    pieces = tokens(pattern, escape)
    word = "".join(text for text, wild in pieces if not wild)
    function = _SIMPLE.get("".join(text if wild else "x" for text, wild in pieces))
    if function is not None:
        return lambda array: function(array, word)
    wildcards = {MANY: ".*", ONE: "."}
    regex = "".join(wildcards[text] if wild else re.escape(text) for text, wild in pieces)
    return lambda array: pc.match_substring_regex(array, rf"(?s)\A{regex}\z")


def like(scope: RuleScope, node: Node, pattern: Node, escape: str = "\\") -> Node:
    """LIKE, which is NULL where the text is NULL."""
    if node.kind != STRING or pattern.kind != STRING:
        raise Unsupported(f"LIKE of {name(node.kind)} and {name(pattern.kind)}")
    return text_test(scope, f"LIKE({node.key},{pattern.key},{escape!r})", node, matcher(pattern.constant, escape))


def _like_rule(scope: RuleScope, expression: exp.Like, escape: str = "\\") -> Node:
    if not isinstance(expression.expression, exp.Literal):
        raise Unsupported("LIKE with anything but a literal")
    node = like(scope, scope.compile(expression.this), scope.compile(expression.expression), escape)
    return negation(node) if expression.args.get("negate") else node


def _escape_rule(scope: RuleScope, expression: exp.Escape) -> Node:
    character = expression.expression
    if not isinstance(expression.this, exp.Like) or not isinstance(character, exp.Literal) or len(character.this) != 1:
        raise Unsupported("ESCAPE with anything but a character after LIKE")
    return _like_rule(scope, expression.this, character.this)


RULES: Final[dict[type[exp.Expression], Rule]] = {exp.Like: _like_rule, exp.Escape: _escape_rule}
