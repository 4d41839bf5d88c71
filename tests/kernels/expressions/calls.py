"""Random calls of functions, casts and conditions, on top of the grammar of operators.

Their SQL with errors made NULL, and the count of the errors, come from :mod:`freshet.sql`.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.kernels.expressions.grammar import INTEGRAL, NUMERIC, Expression, Grammar, common

FRACTIONAL = ("float", "double")
DATES = ("date", "timestamp")
PATTERNS = ["''", "'a'", "'%'", "'a%'", "'%b'", "'%a%'", "'_'", "'%_b%'", "'z_'", "'%\\\\%%'", "'a_%'", "'_%s'"]
WORDS = ["''", "'a'", "'b'", "'ab'", "'é'", "'\U0001f600'", "' '", "'s'"]
PLACES = ["0", "1", "2", "3", "-1", "-2", "-5", "2147483647", "-2147483648"]
UNITS = ["year", "yyyy", "quarter", "month", "mon", "week", "day", "dd", "hour", "minute", "second", "millisecond"]
SPANS = [
    "1 DAY",
    "-3 HOURS",
    "'90' MINUTE",
    "2 WEEKS",
    "15 SECONDS",
    "100000000 DAYS",
    "1 DAY 2 HOURS",
    "7 MICROSECONDS",
]
DAY_FIELDS = ["year", "quarter", "month", "day", "dayofmonth", "dayofyear", "dayofweek", "weekday"]


def call(template: str, kind: str, *args: Expression) -> Expression:
    return Expression("call", kind, args, text=template)


class Calls(Grammar):
    """Draws expressions in which functions stand among the operators."""

    def any(self, depth: int) -> Expression:
        draw = self.random.random()
        if draw < 0.5:
            return self.numeric(depth) if draw < 0.3 else self.predicate(depth)
        return self.text(depth) if draw < 0.75 else self.time(depth)

    def numeric(self, depth: int) -> Expression:
        if depth == 0 or self.random.random() < 0.4:
            return super().numeric(depth)
        make = self.random.choice((self._conditional, self._cast, self._mathematics, self._measure, self._field))
        return make(depth - 1)

    def predicate(self, depth: int) -> Expression:
        if depth == 0 or self.random.random() < 0.6:
            return super().predicate(depth)
        x = self.random.choice
        if x((0, 1)):
            return self._text_test(depth - 1)
        choices: list[Callable[[], Expression]] = [
            lambda: call("isnan({0})", "boolean", self._of_numeric(FRACTIONAL, depth - 1)),
            lambda: call("CAST({0} AS BOOLEAN)", "boolean", self.numeric(depth - 1)),
            lambda: self._chosen("boolean", self.predicate(depth - 1), self.predicate(depth - 1), depth - 1),
        ]
        return x(choices)()

    def _text_test(self, depth: int) -> Expression:
        x = self.random.choice
        templates = [
            f"({{0}} {x(('LIKE', 'NOT LIKE'))} {x(PATTERNS)})",
            "({0} LIKE 'a!%%' ESCAPE '!')",
            f"{x(('startswith', 'endswith', 'contains'))}({{0}}, {x(WORDS)})",
        ]
        return call(x(templates), "boolean", self.text(depth))

    def text(self, depth: int) -> Expression:
        if depth == 0 or self.random.random() < 0.3:
            return self.of(("string",))
        x = self.random.choice
        inner = self.text(depth - 1)
        places = x(PLACES) + x(("", f", {x(PLACES)}"))
        choices = [
            call(f"{x(('upper', 'lower', 'ltrim', 'rtrim', 'trim', 'ucase', 'lcase'))}({{0}})", "string", inner),
            call(f"{x(('substring', 'substr'))}({{0}}, {places})", "string", inner),
            call(f"{x(('left', 'right'))}({{0}}, {x(PLACES[:-1])})", "string", inner),
            call(f"replace({{0}}, {x(WORDS)}, {x(WORDS)})", "string", inner),
            call(f"TRIM({x(('BOTH', 'LEADING', 'TRAILING'))} {x(WORDS[1:])} FROM {{0}})", "string", inner),
            call("concat({0}, 'x', {1})", "string", inner, self.of(("string",))),
            call("({0} || {1})", "string", self.column("c_string"), self.text(depth - 1)),
            call("CAST({0} AS STRING)", "string", self._of_numeric((*INTEGRAL, "boolean"), depth - 1)),
            call(f"{x(('greatest', 'least'))}({{0}}, {{1}})", "string", inner, self.text(depth - 1)),
            self._chosen("string", inner, self.text(depth - 1), depth - 1),
        ]
        return x(choices)

    def time(self, depth: int) -> Expression:
        if depth == 0 or self.random.random() < 0.2:
            return self.of(DATES)
        x = self.random.choice
        stamp, day = self._time("timestamp", depth - 1), self._time("date", depth - 1)
        days = x(("1", "-400", "{1}"))
        choices = [
            call(f"date_trunc('{x(UNITS)}', {{0}})", "timestamp", stamp),
            call(f"trunc({{0}}, '{x(UNITS[:6])}')", "date", day),
            call(f"({{0}} {x('+-')} INTERVAL {x(SPANS)})", "timestamp", stamp),
            call(f"{x(('date_add', 'date_sub'))}({{0}}, {days})", "date", day, self.of(("smallint",))),
            call("CAST({0} AS DATE)", "date", stamp),
            call("CAST({0} AS TIMESTAMP)", "timestamp", day),
            call("timestamp_micros({0})", "timestamp", self.of(INTEGRAL[:3])),
            self._chosen("timestamp", stamp, self._time("timestamp", depth - 1), depth - 1),
        ]
        return x(choices)

    def operand(self, depth: int) -> Expression:
        draw = self.random.random()
        if draw < 0.4:
            return super().operand(depth)
        return self.numeric(depth) if draw < 0.6 else self.text(depth) if draw < 0.8 else self.time(depth)

    def _time(self, kind: str, depth: int) -> Expression:
        made = self.time(depth)
        return made if made.type == kind else call(f"CAST({{0}} AS {kind})", kind, made)

    def _of_numeric(self, kinds: tuple[str, ...], depth: int) -> Expression:
        made = self.numeric(depth)
        return made if made.type in kinds else self.of(kinds)

    def _conditional(self, depth: int) -> Expression:
        one, two = self.numeric(depth), self.numeric(depth)
        return self._chosen(common(one.type, two.type), one, two, depth)

    def _chosen(self, kind: str, one: Expression, two: Expression, depth: int) -> Expression:
        x = self.random.choice
        condition, operand = self.predicate(depth), self.numeric(depth)
        other = self.predicate(0)
        choices = [
            call("CASE WHEN {2} THEN {0} ELSE {1} END", kind, one, two, condition),
            call("CASE WHEN {2} THEN {0} WHEN {3} THEN NULL ELSE {1} END", kind, one, two, condition, other),
            call("CASE {2} WHEN {3} THEN {0} WHEN 1 THEN {1} END", kind, one, two, operand, self.numeric(0)),
            call("IF({2}, {0}, {1})", kind, one, two, condition),
            call(f"{x(('COALESCE', 'NVL', 'IFNULL'))}({{0}}, {{1}})", kind, one, two),
            call("COALESCE({0}, NULL, {1}, {0})", kind, one, two),
            call("NVL2({2}, {0}, {1})", kind, one, two, operand),
        ]
        return x(choices)

    def _cast(self, depth: int) -> Expression:
        kind = self.random.choice(NUMERIC)
        form = self.random.choice((f"CAST({{0}} AS {kind})", f"TRY_CAST({{0}} AS {kind})", f"{kind}({{0}})"))
        draw = self.random.random()
        if draw < 0.7:
            kinds = (*INTEGRAL[:2], *FRACTIONAL) if kind == "float" else NUMERIC
            return call(form, kind, self._of_numeric(kinds, depth))
        if draw < 0.8:
            return call(form, kind, self.predicate(depth))
        if draw < 0.9 and kind != "float":
            return call(form, kind, self.text(depth))
        kind = self.random.choice(("bigint", "int", "double"))
        return call(f"CAST({{0}} AS {kind})", kind, self._time("timestamp", depth))

    def _mathematics(self, depth: int) -> Expression:
        x, inner, other = self.random.choice, self.numeric(depth), self.numeric(depth)
        kind = common(inner.type, other.type)
        whole = [self._of_numeric(INTEGRAL, depth) for _ in range(2)]
        choices = [
            call("abs({0})", inner.type, inner),
            call("negative({0})", inner.type, inner),
            call(f"{x(('ceil', 'ceiling', 'floor'))}({{0}})", "bigint", inner),
            call(f"round({{0}}{x(('', ', 0'))})", inner.type, inner),
            call(f"{x(('sqrt', 'sign', 'signum'))}({{0}})", "double", inner),
            call("pow({0}, 2)", "double", inner),
            call("mod({0}, {1})", kind, inner, other),
            call("({0} DIV {1})", "bigint", *whole),
            call(f"{x(('greatest', 'least'))}({{0}}, {{1}})", kind, inner, other),
            call("NULLIF({0}, {1})", inner.type, inner, other),
        ]
        return x(choices)

    def _measure(self, depth: int) -> Expression:
        word = self.random.choice(WORDS)
        forms = ["length({0})", "char_length({0})", f"instr({{0}}, {word})", f"locate({word}, {{0}})"]
        return call(self.random.choice([*forms, f"position({word} IN {{0}})"]), "int", self.text(depth))

    def _field(self, depth: int) -> Expression:
        x = self.random.choice
        stamp = self._time("timestamp", depth)
        choices = [
            call(f"{x(DAY_FIELDS)}({{0}})", "int", self.time(depth)),
            call(f"{x(('hour', 'minute', 'second'))}({{0}})", "int", stamp),
            call(f"{x(('unix_micros', 'unix_millis', 'unix_seconds'))}({{0}})", "bigint", stamp),
            call("datediff({0}, {1})", "int", self._time("date", depth), self._time("date", depth)),
        ]
        return x(choices)
