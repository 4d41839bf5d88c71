"""Text to syntax tree and back: whole queries, single expressions, names."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from functools import lru_cache
from threading import Lock
from typing import Final

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from freshet.sql.check.functions import CAST_FUNCTIONS, UNIT_FUNCTIONS, name_of
from freshet.sql.check.signatures import signatures
from freshet.sql.parse.clauses import check_clauses
from freshet.sql.parse.dialect import Freshet, Suffixed, span_of
from freshet.sql.parse.errors import SqlError, did_you_mean
from freshet.sql.parse.limits import MOST_BRACKETS, MOST_CHARACTERS, MOST_LEVELS, MOST_WORDS, TOO_DEEP, check_levels
from freshet.sql.parse.trees import rewritten
from freshet.sql.parse.windows import spread_table_functions

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED: Final = frozenset((
    "all", "and", "anti", "any", "as", "authorization", "between", "both", "case", "cast", "check", "collate",
    "column", "constraint", "create", "cross", "current_date", "current_time", "current_timestamp", "current_user",
    "distinct", "div", "else", "end", "escape", "except", "exists", "false", "fetch", "filter", "for", "foreign",
    "from", "full", "grant", "group", "having", "ilike", "in", "inner", "intersect", "interval", "into", "is", "join",
    "lateral", "leading", "left", "like", "limit", "localtimestamp", "minus", "natural", "not", "null", "offset",
    "on", "only", "or", "order", "outer", "overlaps", "primary", "references", "right", "rlike", "select", "semi",
    "session_user", "some", "table", "then", "to", "trailing", "true", "union", "unique", "unknown", "user", "using",
    "values", "when", "where", "with", "within",
))  # fmt: skip
_CLAUSES: Final = [
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "UNION", "ALL", "JOIN", "LEFT", "INNER",
    "ON", "AS", "DISTINCT", "AND", "OR", "NOT", "PERIOD", "DEADLINE", "EXCEPT", "INTERSECT",
]  # fmt: skip
_EXPECTED: Final = "a query is SELECT ... FROM stream [window] WHERE ... GROUP BY ... HAVING ..."
_TYPES: Final = [*sorted(CAST_FUNCTIONS), "timestamp_ntz", "array", "map", "struct"]
_CLOSING: Final = {TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET}


@lru_cache(maxsize=1024)
def stands_in_from(name: str) -> bool:
    """Whether a name can be in FROM without quotes; most words of SQL can.

    >>> stands_in_from("all"), stands_in_from("select")
    (True, False)
    """
    try:
        (tree,) = Freshet().parse(f"SELECT v FROM {name} WHERE v > 1")
    except (ParseError, TokenError, SqlError):
        return False
    return tree is not None and [table.name for table in tree.find_all(exp.Table)] == [name]


_FRAMES_OF_A_CALL: Final = 32
"""Maximum number of frames that sqlglot needs for a call within a call."""
_DEEP: Final = Lock()


def identifier(name: str) -> exp.Identifier:
    """A name as an identifier that is back-quoted only where it must be.

    >>> to_sql(identifier("price")), to_sql(identifier("order")), to_sql(identifier("a b"))
    ('price', '`order`', '`a b`')
    """
    plain = _PLAIN_NAME.fullmatch(name) is not None and name.lower() not in _RESERVED
    return exp.Identifier(this=name, quoted=not plain)


def column(name: str, *fields: str) -> exp.Expr:
    """A column, or a field within a column that is a struct."""
    return with_fields(exp.Column(this=identifier(name)), fields)


def with_fields(tree: exp.Expr, fields: Iterable[str]) -> exp.Expr:
    """A field within a struct, which may be a field within a struct itself."""
    for field in fields:
        tree = exp.Dot(this=tree, expression=identifier(field))
    return tree


def to_sql(tree: exp.Expr) -> str:
    """Normalised Spark SQL text of a tree."""
    return str(tree.sql(dialect=Freshet, comments=False))


def _parse_deeply(text: str) -> list[exp.Expr | None]:
    """Parses a text that Freshet wrote; each operator in it may have become a nested call: a + b as TRY_ADD(a, b)."""
    try:
        return Freshet().parse(text)
    except RecursionError:
        # One at a time: the limit is one for all threads, and nobody may lower it while another is deep.
        with _DEEP:
            limit = sys.getrecursionlimit()
            sys.setrecursionlimit(limit + _FRAMES_OF_A_CALL * MOST_LEVELS)
            try:
                return Freshet().parse(text)
            finally:
                sys.setrecursionlimit(limit)


@lru_cache(maxsize=4096)
def shared_expression(text: str) -> exp.Expr:
    """As :func:`parse_expression`, but callers share the tree, so they must not change it."""
    try:
        (tree,) = _parse_deeply(text)
    except (ParseError, TokenError, ValueError) as error:
        raise SqlError(f"{text!r} is not an expression: {_what_is_wrong(error, text)}") from None
    except RecursionError:
        raise SqlError(TOO_DEEP) from None
    if tree is None:
        raise SqlError("the expression is empty")
    return rewritten(_tidy(tree), _field)


def _field(node: exp.Expr) -> exp.Expr | None:
    parts = [part.name for part in node.parts] if isinstance(node, exp.Column) else []
    return column(*parts) if len(parts) > 1 else None


def parse_expression(text: str) -> exp.Expr:
    """The tree of an expression over unqualified columns; a dot is a field of a struct.

    >>> parse_expression("a.b > 1").find(exp.Column).name
    'a'
    """
    return shared_expression(text).copy()


def parse_query(text: str) -> exp.Expr:
    """The tree of a query; ``meta`` of it holds ``period``, ``deadline`` and ``emit`` where they are given."""
    return shared_query(text).copy()


@lru_cache(maxsize=64)
def shared_query(text: str) -> exp.Expr:
    """As :func:`parse_query`, but callers share the tree, so they must not change it."""
    tokens = _tokens(text)
    _check_brackets(tokens)
    try:
        trees = [tree for tree in Freshet().parse(text) if tree is not None]
    except ParseError as error:
        raise _parse_error(error, text, tokens) from None
    except RecursionError:
        raise SqlError(TOO_DEEP) from None
    if len(trees) > 1:
        raise SqlError("this is more than one query: a query is one SELECT (or SELECTs joined by UNION ALL)")
    if not trees or not isinstance(trees[0], exp.Query):
        raise SqlError("a continuous query begins with SELECT", span_of(tokens[0]) if tokens else None)
    check_levels(trees[0])
    check_clauses(trees[0])
    spread_table_functions(trees[0])
    return _tidy(trees[0])


def _tidy(tree: exp.Expr) -> exp.Expr:
    return rewritten(tree, _tidied, children_first=True)


def _tidied(node: exp.Expr) -> exp.Expr | None:
    number = node.this
    # -9223372036854775808L is one literal to Spark; here it comes as the negative of one that is too large.
    if isinstance(node, exp.Neg) and isinstance(number, Suffixed) and isinstance(number.this, exp.Literal):
        return Suffixed(this=exp.Neg(this=number.this.copy()), to=number.to.copy())
    # INTERVAL 1 DAY 2 HOURS comes as a sum without the parentheses that it needs after a minus.
    if _is_interval_sum(node) and isinstance(node.parent, exp.Binary) and not _is_interval_sum(node.parent):
        return exp.Paren(this=node.copy())
    if name_of(node) in UNIT_FUNCTIONS and len(node.expressions) == 3:
        unit = node.expressions[0]
        if isinstance(unit, exp.Column) and not unit.table:
            unit.replace(exp.Var(this=unit.name))
    return None


def _is_interval_sum(tree: exp.Expr) -> bool:
    sides = (tree.this, tree.expression) if isinstance(tree, exp.Add) else ()
    return bool(sides) and all(isinstance(side, exp.Interval) or _is_interval_sum(side) for side in sides)


def _tokens(text: str) -> list[Token]:
    if len(text) > MOST_CHARACTERS:
        raise SqlError(f"the query has {len(text):,} characters: at most {MOST_CHARACTERS:,} are allowed")
    try:
        tokens = list(Freshet().tokenize(text))
        if len(tokens) > MOST_WORDS:
            raise SqlError(f"the query has {len(tokens):,} words and signs: at most {MOST_WORDS:,} are allowed")
        _check_numbers(tokens)
        return tokens
    except TokenError as error:
        opening = re.search(r"Missing (\S+) from (\d+):(\d+)", str(error.__cause__ or error))
        if opening is None:
            raise SqlError("the text breaks off within a string, a quoted name or a comment") from None
        quote, line, col = opening.groups()
        start = _offset(text, int(line), int(col) + 1)
        raise SqlError(f"what begins here is not closed: a {quote} is missing", (start, start)) from None


def _check_numbers(tokens: list[Token]) -> None:
    """Refuses numbers that no type can hold, as Spark does."""
    for token in tokens:
        if token.token_type == TokenType.NUMBER and len(token.text) > 5:
            mantissa, exponent, _ = token.text.lower().partition("e")
            if not exponent and sum(map(str.isdigit, mantissa.lstrip("0"))) > 38:
                raise SqlError("a number has at most 38 digits: use an exponent, as in 1e40", span_of(token))
            if exponent and not math.isfinite(float(token.text)):
                raise SqlError("this number is too large: at most 1.7976931348623157e308 is allowed", span_of(token))


def _offset(text: str, line: int, col: int) -> int:
    lines = text.split("\n")
    return min(sum(len(part) + 1 for part in lines[: line - 1]) + max(col - 1, 0), max(len(text) - 1, 0))


def _check_brackets(tokens: list[Token]) -> None:
    open_brackets: list[Token] = []
    closing = {"(": ")", "[": "]"}
    for token in tokens:
        if token.token_type in _CLOSING:
            open_brackets.append(token)
            if len(open_brackets) > MOST_BRACKETS:
                raise SqlError(TOO_DEEP, span_of(token))
        elif token.token_type in _CLOSING.values():
            if not open_brackets:
                raise SqlError(f"this {token.text} closes nothing: remove it or open it before", span_of(token))
            opened = open_brackets.pop()
            if _CLOSING[opened.token_type] != token.token_type:
                raise SqlError(f"this {opened.text} is not closed by a {closing[opened.text]}", span_of(opened))
    if open_brackets:
        opened = open_brackets[-1]
        raise SqlError(f"this {opened.text} is not closed: a {closing[opened.text]} is missing", span_of(opened))


def _what_is_wrong(error: Exception, text: str) -> str:
    """Why an expression cannot be parsed."""
    try:
        tokens = _tokens(text)
        _check_brackets(tokens)
    except SqlError as found:
        return found.problem
    if isinstance(error, ParseError) and tokens:
        return _parse_error(error, text, tokens, form="").problem
    return str(error).splitlines()[0]


def _parse_error(error: ParseError, text: str, tokens: list[Token], form: str = f"; {_EXPECTED}") -> SqlError:
    detail = error.errors[0] if error.errors else {}
    end = _offset(text, detail.get("line") or 1, detail.get("col") or 1)
    index = next((i for i, token in enumerate(tokens) if token.start <= end <= token.end), len(tokens) - 1)
    token, expected = tokens[index], str(detail.get("description") or "")
    if expected.startswith("Required keyword"):
        return _too_few(tokens, index) or SqlError(f"something is missing after {token.text}", span_of(token))
    unknown = _unknown_type(expected, tokens, index)
    if unknown is not None:
        return unknown
    for suspect in tokens[index::-1][:3]:
        hint = did_you_mean(suspect.text, _CLAUSES) if len(suspect.text) > 2 else ""
        if hint and suspect.token_type == TokenType.VAR and suspect.text.upper() not in _CLAUSES:
            return SqlError(f"{suspect.text} is not expected here{hint}", span_of(suspect))
    remedy = f" ({expected[0].lower()}{expected[1:]})" if expected.startswith("Expect") else ""
    return SqlError(f"{token.text} is not expected here{remedy}{form}", span_of(token))


def _unknown_type(expected: str, tokens: list[Token], index: int) -> SqlError | None:
    """The error that a word is no type, if one was expected; None: something else is wrong."""
    if expected not in ("Expecting >", "Expected TYPE after CAST", "Expected type"):
        return None
    if expected == "Expecting >" and _PLAIN_NAME.fullmatch(tokens[index].text):
        # The name of a field comes before its type, with a colon or without.
        following = next((token.text for token in tokens[index + 1 : index + 2]), "")
        index += 2 if following == ":" else _PLAIN_NAME.fullmatch(following) is not None
    token = tokens[min(index, len(tokens) - 1)]
    if _PLAIN_NAME.fullmatch(token.text) is None:
        return None
    return SqlError(f"unknown type {token.text}{did_you_mean(token.text, _TYPES)}", span_of(token))


def _too_few(tokens: list[Token], closing: int) -> SqlError | None:
    """The error of a call that ends at a parenthesis and has too few arguments; None: it is no such call."""
    depth = commas = 0
    for index in range(closing, 0, -1):
        token, before = tokens[index], tokens[index - 1]
        depth += (token.text == ")") - (token.text == "(")
        commas += token.text == "," and depth == 1
        if not depth:
            found = signatures().get(before.text.lower())
            count = commas + 1 if closing - index > 1 else 0
            if found is None or found.takes(count):
                return None
            return SqlError(f"{before.text.lower()}() takes {found.wanted}, not {count}", span_of(before))
    return None
