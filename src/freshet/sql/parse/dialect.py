"""The dialect: Spark SQL with windows after a name, and EMIT CHANGES and PERIOD ... DEADLINE ... at the end.

Functions stay calls by name (`exp.Anonymous`): what the user wrote is what Spark gets. The Spark dialect would
translate many of them to sqlglot's own vocabulary and back, and not every round trip keeps the meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from freshet.model.errors import UserError
from freshet.model.units import parse_duration
from freshet.sql.parse.errors import SqlError, TextPlace, did_you_mean
from freshet.sql.parse.limits import balance

WINDOW_FORMS: Final = (
    "[RANGE 1 MINUTE], [RANGE 1 MINUTE SLIDE 10 SECONDS], [ROWS 500], [PARTITION BY k ROWS 10], [NOW] or [UNBOUNDED]"
)

_COMMA: Final = "a comma has nothing next to it: remove it, or write what is missing"

TABLE_FUNCTIONS: Final = ("TUMBLE", "HOP", "SESSION")
"""Windows that users of other systems write around a stream in FROM."""

_KEPT_FUNCTION_PARSERS: Final = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "POSITION", "OVERLAY")


class StreamWindow(exp.Expression):
    """A window after the name of a stream or a sub-query; ``time`` is the column that TUMBLE and HOP name."""

    arg_types: ClassVar[dict[str, bool]] = dict.fromkeys(
        ("size", "slide", "rows", "partition", "time", "offset"), False
    )


class Suffixed(exp.Cast):
    """A number with the letter of its type, such as ``5L``.

    Spark gives a literal beside a decimal just the digits that it needs. Written as a cast, which it is to sqlglot, it
    would take all the digits of its type, and the result would lose some of its own.
    """


SUFFIXES: Final = {
    exp.DType.BIGINT: "L", exp.DType.SMALLINT: "S", exp.DType.TINYINT: "Y", exp.DType.DOUBLE: "D",
    exp.DType.FLOAT: "F", exp.DType.DECIMAL: "BD",
}  # fmt: skip


class FreshetGenerator(SparkGenerator):
    """Spark's generator, which writes the suffixes of numbers as they came."""

    TRANSFORMS: ClassVar[Any] = {
        **SparkGenerator.TRANSFORMS,
        Suffixed: lambda self, e: f"{self.sql(e, 'this')}{SUFFIXES[e.to.this]}",
    }


class FreshetParser(SparkParser):
    """Spark's parser with windows and with functions kept by name."""

    STRICT_CAST = True
    _in_join = False
    ADD_JOIN_ON_TRUE = False
    # array(a, b)[1] is an element, not another way to write an array.
    ARRAY_CONSTRUCTORS: ClassVar[Any] = {}
    FUNCTIONS: ClassVar[Any] = {}
    NO_PAREN_FUNCTIONS: ClassVar[Any] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[Any] = {
        name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "ANY")
    }
    FUNCTION_PARSERS: ClassVar[Any] = {name: SparkParser.FUNCTION_PARSERS[name] for name in _KEPT_FUNCTION_PARSERS}

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        tokens, promises = split_promises(raw_tokens)
        tokens, emit = split_emit(without_table(tokens))
        trees = super().parse(tokens, sql)
        for tree in trees:
            if tree is not None:
                balance(tree)
        if trees and trees[-1] is not None:
            trees[-1].meta.update(promises, **emit)
        return trees

    def build_cast(self, strict: bool, **kwargs: Any) -> exp.Expr:
        number, suffix = kwargs["this"], self._prev.text.upper()
        cast = super().build_cast(strict, **kwargs)
        if suffix in SUFFIXES.values() and isinstance(number, exp.Literal):
            return Suffixed(this=number, to=cast.args["to"])
        return cast

    def _parse_csv(self, parse_method: Any, sep: TokenType = TokenType.COMMA) -> list[Any]:
        # sqlglot leaves out what is missing before, between and behind commas.
        first = parse_method()
        items = [] if first is None else [first]
        while self._match(sep):
            comma = self._prev
            item = parse_method() if items else None
            if item is not None:
                items.append(item)
            elif not items or self._curr.token_type != TokenType.VAR:
                raise SqlError(_COMMA, span_of(comma))
        return items

    def _parse_join(self, *args: Any, **kwargs: Any) -> Any:
        first = self._curr
        with self._joining(True):
            join = super()._parse_join(*args, **kwargs)
        if join is None and first.token_type == TokenType.COMMA and self._prev is first:
            raise SqlError(_COMMA, span_of(first))
        return join

    def _parse_joins(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        # Behind JOIN b sqlglot looks for a JOIN b JOIN c ON ... ON ..., and tries each further JOIN twice.
        return iter(()) if self._in_join else super()._parse_joins(*args, **kwargs)

    @contextmanager
    def _joining(self, inside: bool) -> Iterator[None]:
        before, self._in_join = self._in_join, inside
        try:
            yield
        finally:
            self._in_join = before

    def _parse_as_command(self, start: Token) -> exp.Command:
        # sqlglot would take any text behind such a word, and write a warning to the log.
        raise SqlError("a continuous query begins with SELECT", span_of(start))

    def _parse_table_parts(self, *args: Any, **kwargs: Any) -> Any:
        table = super()._parse_table_parts(*args, **kwargs)
        if isinstance(table, exp.Table):
            self._add_window(table)
        return table

    def _parse_table(self, *args: Any, **kwargs: Any) -> Any:
        with self._joining(False):
            table = super()._parse_table(*args, **kwargs)
        if isinstance(table, exp.Table) and table.alias and self._curr.token_type == TokenType.L_BRACKET:
            raise self._wrong(f"a window comes before the alias: {table.name} [...] AS {table.alias}")
        return table

    def _parse_subquery(self, *args: Any, **kwargs: Any) -> Any:
        subquery = super()._parse_subquery(*args, **kwargs)
        if subquery is not None and self._add_window(subquery) and not subquery.alias:
            subquery.set("alias", self._parse_table_alias())
        return subquery

    def _add_window(self, node: exp.Expr) -> bool:
        if not self._match(TokenType.L_BRACKET):
            return False
        opening = self._prev
        node.set("window", self._parse_stream_window().update_positions(opening))
        if not self._match(TokenType.R_BRACKET):
            raise self._wrong(f"a window is {WINDOW_FORMS}")
        if self._curr and self._curr.token_type == TokenType.L_BRACKET:
            raise self._wrong("a stream has one window")
        return True

    def _parse_stream_window(self) -> StreamWindow:
        if self._match_text_seq("RANGE"):
            size = self._parse_window_duration("RANGE")
            slide = self._parse_window_duration("SLIDE") if self._match_text_seq("SLIDE") else None
            return StreamWindow(size=size, slide=slide)
        if self._match_text_seq("ROWS"):
            return StreamWindow(rows=self._parse_window_rows())
        if self._match(TokenType.PARTITION_BY):
            keys = self._parse_csv(self._parse_column)
            if not self._match_text_seq("ROWS"):
                raise self._wrong("PARTITION BY in a window is followed by ROWS: [PARTITION BY k ROWS 10]")
            return StreamWindow(rows=self._parse_window_rows(), partition=keys)
        if self._match_text_seq("NOW"):
            return StreamWindow(size=1e-6, slide=1e-6)
        if self._match_text_seq("UNBOUNDED"):
            return StreamWindow()
        hint = did_you_mean(self._curr.text, ["RANGE", "ROWS", "PARTITION", "NOW", "UNBOUNDED"])
        raise self._wrong(f"unknown window [{self._curr.text} ...]: a window is {WINDOW_FORMS}{hint}")

    def _parse_window_duration(self, word: str) -> float:
        seconds, used = read_duration(self._tokens[self._index :], word)
        self._advance(used)
        return seconds

    def _parse_window_rows(self) -> int:
        text = self._curr.text if self._curr.token_type == TokenType.NUMBER else ""
        if not text.isdigit() or not 1 <= int(text) < 2**31:
            raise self._wrong("ROWS is followed by a whole number from 1 to 2147483647, as in [ROWS 500]")
        self._advance()
        return int(text)

    def _wrong(self, problem: str) -> SqlError:
        return SqlError(problem, span_of(self._curr or self._prev))


def span_of(token: Token) -> TextPlace:
    """First and last character of a token."""
    return token.start, token.end


class Freshet(Spark):
    """Spark SQL with windows on streams."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's words and strings, with two differences."""

        # Spark 4 reads a doubled quote as a quote; sqlglot's Spark dialect joins two literals instead.
        STRING_ESCAPES: ClassVar[Any] = ["\\", "'", '"']
        # Named windows are not for streams; without the keywords, GROUP BY window(ts, '1 minute') is a function call,
        # and so is SESSION(s, ts, INTERVAL 1 MINUTE) in FROM.
        KEYWORDS: ClassVar[Any] = {
            word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if word not in ("WINDOW", "SESSION")
        }

    Parser = FreshetParser
    Generator = FreshetGenerator


_PROMISES: Final = ("PERIOD", "DEADLINE")
_STARTS_DURATION: Final = frozenset({TokenType.NUMBER, TokenType.STRING, TokenType.INTERVAL})


def _begins_promise(token: Token, following: Token) -> bool:
    # No SQL has a name directly before a number, so columns and aliases called "period" stay possible.
    starts = following.token_type in _STARTS_DURATION or following.text[:1].isdigit()
    return token.token_type == TokenType.VAR and token.text.upper() in _PROMISES and starts


def split_promises(tokens: list[Token]) -> tuple[list[Token], dict[str, float]]:
    """Cuts ``PERIOD 10 SECONDS DEADLINE 5 SECONDS`` off the end; returns the rest and the promises in seconds."""
    first = next((i for i in range(len(tokens) - 1) if _begins_promise(tokens[i], tokens[i + 1])), None)
    if first is None:
        return tokens, {}
    promises: dict[str, float] = {}
    place = first
    while place < len(tokens) and tokens[place].token_type != TokenType.SEMICOLON:
        word = tokens[place].text.upper()
        if word not in _PROMISES or word.lower() in promises:
            raise SqlError("after PERIOD 10 SECONDS [DEADLINE 5 SECONDS] the query ends", span_of(tokens[place]))
        seconds, used = read_duration(tokens[place + 1 :], word)
        promises[word.lower()] = seconds
        place += 1 + used
    if "period" not in promises:
        problem = "DEADLINE needs a PERIOD before it: PERIOD 10 SECONDS DEADLINE 5 SECONDS"
        raise SqlError(problem, span_of(tokens[first]))
    return tokens[:first] + tokens[place:], promises


def split_emit(tokens: list[Token]) -> tuple[list[Token], dict[str, TextPlace]]:
    """Cuts ``EMIT CHANGES`` off the end; returns the rest and where it stood."""
    end = len(tokens)
    while end and tokens[end - 1].token_type == TokenType.SEMICOLON:
        end -= 1
    # No SQL ends in two names of which the first is not an alias of a stream: FROM s EMIT CHANGES has no other meaning.
    if end < 2 or tokens[end - 2].text.upper() != "EMIT" or tokens[end - 2].token_type != TokenType.VAR:
        return tokens, {}
    if tokens[end - 1].text.upper() != "CHANGES":
        problem = "EMIT is followed by CHANGES; without it a window's rows come once, when it closes"
        raise SqlError(problem, span_of(tokens[end - 1]))
    return tokens[: end - 2] + tokens[end:], {"emit": (tokens[end - 2].start, tokens[end - 1].end)}


def without_table(tokens: list[Token]) -> list[Token]:
    """Leaves out the word TABLE of ``TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL 1 MINUTE)``, as the standard has it."""

    def is_word(place: int) -> bool:
        if tokens[place].token_type != TokenType.TABLE or not 2 <= place < len(tokens) - 1:
            return False
        function, opening, following = tokens[place - 2], tokens[place - 1], tokens[place + 1]
        called = function.text.upper() in TABLE_FUNCTIONS and opening.token_type == TokenType.L_PAREN
        return called and following.token_type != TokenType.COMMA

    return [token for place, token in enumerate(tokens) if not is_word(place)]


def read_duration(tokens: list[Token], word: str) -> tuple[float, int]:
    """Seconds of the duration that tokens begin with, and how many tokens it takes."""
    used = 1 if tokens and tokens[0].token_type == TokenType.INTERVAL else 0
    text = tokens[used].text if used < len(tokens) else ""
    used += 1
    if text.replace(".", "", 1).isdigit():
        # "10s" and "1d" are numbers with the suffix of a type to the tokenizer: number, '::', type.
        used += used < len(tokens) and tokens[used].token_type == TokenType.DCOLON
        text += f" {tokens[used].text}" if used < len(tokens) else ""
        used += 1
    try:
        seconds = parse_duration(text)
    except UserError:
        seconds = 0.0
    if seconds <= 0.0:
        example = f"such as {word} 10 SECONDS, and at most 36500 days"
        place = span_of(tokens[0]) if tokens else None
        raise SqlError(f"{word} is followed by a duration above 0 with its unit, {example}", place)
    return seconds, used
