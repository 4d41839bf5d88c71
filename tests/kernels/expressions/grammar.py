"""Random expressions in three forms: Spark SQL for the kernels, Spark SQL with try_ functions, and plain Python.

The Python form interprets Spark's rules row by row, written apart from the kernels and without regard to speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np

INTEGRAL = ("tinyint", "smallint", "int", "bigint")
NUMERIC = (*INTEGRAL, "float", "double")
BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
TYPES = (*NUMERIC, "boolean", "string", "date", "timestamp")
DAY = 86_400_000_000


@dataclass(frozen=True)
class Expression:
    """``op`` is col, lit, an operator sign or a word; ``text`` is the name or the literal's spelling."""

    op: str
    type: str
    args: tuple[Expression, ...] = ()
    text: str = ""
    value: Any = None

    def plain(self) -> str:
        a = [arg.plain() for arg in self.args]
        return self._common(a) or (f"(-({a[0]}))" if self.op == "neg" else f"({a[0]} {self.op} {a[1]})")

    def safe(self) -> str:
        a = [arg.safe() for arg in self.args]
        names = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
        if self.op == "neg":
            return f"try_subtract(CAST(0 AS {self.type}), {a[0]})" if self.type in INTEGRAL else f"(-({a[0]}))"
        if self.op in names:
            return f"{names[self.op]}({a[0]}, {a[1]})"
        return self._common(a) or f"({a[0]} {self.op} {a[1]})"

    def errors(self) -> str:
        """SQL that counts the evaluation errors of a row."""
        counts = [arg.errors() for arg in self.args]
        if self.op in ("AND", "OR"):
            decided = "false" if self.op == "AND" else "true"
            counts[1] = "0" if counts[1] == "0" else f"if({self.args[0].safe()} <=> {decided}, 0, {counts[1]})"
        if self.op in ("+", "-", "*", "/", "%", "neg"):
            known = " AND ".join(f"{arg.safe()} IS NOT NULL" for arg in self.args)
            counts.append(f"CAST({known} AND {self.safe()} IS NULL AS INT)")
        return " + ".join(count for count in counts if count != "0") or "0"

    def _common(self, a: list[str]) -> str | None:
        if self.op in ("col", "lit"):
            return self.text
        if self.op == "call":
            return self.text.format(*a)
        if self.op == "IN":
            return f"({a[0]} IN ({', '.join(a[1:])}))"
        if self.op == "BETWEEN":
            return f"({a[0]} BETWEEN {a[1]} AND {a[2]})"
        if self.op.startswith("IS "):
            return f"({a[0]} {self.op})"
        return f"(NOT {a[0]})" if self.op == "NOT" else None


def common(left: str, right: str) -> str:
    if left == right or right == "void":
        return left
    if left == "void":
        return right
    if {left, right} <= {*NUMERIC, "decimal"}:
        if {left, right} <= {*INTEGRAL, "decimal"}:
            return "decimal" if "decimal" in (left, right) else max(left, right, key=INTEGRAL.index)
        return "double"
    assert {left, right} <= {"date", "timestamp"}, (left, right)
    return "timestamp"


def cast(value: Any, source: str, target: str) -> Any:
    if value is None or source == target or target == "void":
        return value
    if target == "double":
        return float(value)
    if target == "float":
        return np.float32(value)
    if target == "timestamp" and source == "date":
        return value * DAY
    return Decimal(value) if target == "decimal" else value


def order(value: Any) -> Any:
    """A key that sorts as Spark does: NaN last."""
    if isinstance(value, float | np.floating):
        return (1, 0.0) if np.isnan(value) else (0, float(value))
    return value.encode() if isinstance(value, str) else value


def evaluate(e: Expression, row: dict[str, Any]) -> tuple[Any, int]:
    """The value of a row and the number of evaluation errors."""
    if e.op == "col":
        return row[e.text], 0
    if e.op == "lit":
        return e.value, 0
    if e.op in ("AND", "OR"):
        return _connect(e, row)
    if e.op == "BETWEEN":
        parts = [evaluate(arg, row) for arg in e.args]
        x, low, high = (Expression("lit", arg.type, value=value) for arg, (value, _) in zip(e.args, parts, strict=True))
        bounds = (Expression(">=", "boolean", (x, low)), Expression("<=", "boolean", (x, high)))
        return evaluate(Expression("AND", "boolean", bounds), row)[0], sum(count for _, count in parts)
    parts = [evaluate(arg, row) for arg in e.args]
    values, errors = [value for value, _ in parts], sum(count for _, count in parts)
    if e.op in ("+", "-", "*", "/", "%", "neg"):
        kinds = [arg.type for arg in e.args]
        values = [cast(value, kind, e.type) for value, kind in zip(values, kinds, strict=True)]
        if None in values:
            return None, errors
        result = _calculate(e.op, e.type, values)
        return result, errors + (result is None)
    return _decide(e, values), errors


def _connect(e: Expression, row: dict[str, Any]) -> tuple[Any, int]:
    decisive = e.op == "OR"
    left, errors = evaluate(e.args[0], row)
    if left is decisive:
        return decisive, errors
    right, more = evaluate(e.args[1], row)
    value = decisive if right is decisive else None if left is None or right is None else not decisive
    return value, errors + more


def _decide(e: Expression, values: list[Any]) -> bool | None:
    kinds = [arg.type for arg in e.args]
    first = values[0]
    if e.op == "NOT":
        return None if first is None else not first
    if e.op.startswith("IS "):
        wanted = {"NULL": None, "TRUE": True, "FALSE": False}[e.op.split()[-1]]
        return (first is wanted) != ("NOT" in e.op)
    kind = "void"
    for other in kinds:
        kind = common(kind, other)
    keys = [order(cast(value, k, kind)) for value, k in zip(values, kinds, strict=True)]
    if e.op == "IN":
        if first is None:
            return None
        return True if keys[0] in [k for k in keys[1:] if k is not None] else None if None in keys[1:] else False
    a, b = keys
    beyond = _beyond_bigint(e)
    if beyond is not None:
        return beyond
    if e.op == "<=>":
        return bool(a == b) if None not in keys else a is None and b is None
    if None in keys:
        return None
    return bool({"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[e.op])


def _beyond_bigint(e: Expression) -> bool | None:
    """Spark replaces the ordering of an integer and a literal beyond bigint by its answer, even for NULL."""
    if e.op not in ("<", "<=", ">", ">="):
        return None
    left, right = e.args
    for number, other, below in ((right, left, "<"), (left, right, ">")):
        exact = number.op == "lit" and number.type == "decimal" and other.type in INTEGRAL
        if exact and not -(2**63) <= number.value <= 2**63 - 1:
            return bool((number.value > 0) == (e.op[0] == below))
    return None


def _calculate(op: str, kind: str, values: list[Any]) -> Any:
    a, b = values[0], values[-1]
    if kind in INTEGRAL:
        if op == "%" and b == 0:
            return None
        result = {
            "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "neg": lambda: -a,
            "%": lambda: abs(a) % abs(b) * (-1 if a < 0 else 1),
        }[op]()  # fmt: skip
        half = 1 << (BITS[kind] - 1)
        return result if -half <= result < half else None
    if op in "/%" and b == 0:
        return None
    dtype = np.float32 if kind == "float" else np.float64
    with np.errstate(all="ignore"):
        x, y = dtype(a), dtype(b)
        return {
            "+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "/": lambda: x / y,
            "%": lambda: np.fmod(x, y), "neg": lambda: -x,
        }[op]()  # fmt: skip


LITERALS: dict[str, list[tuple[str, Any]]] = {
    "tinyint": [("1Y", 1), ("-128Y", -128), ("127Y", 127)],
    "smallint": [("7S", 7), ("-32768S", -32768)],
    "int": [
        ("0", 0), ("1", 1), ("-1", -1), ("2", 2), ("-3", -3), ("300", 300), ("2147483647", 2147483647),
        ("-2147483648", -2147483648),
    ],
    "bigint": [
        ("2147483648", 2147483648), ("5L", 5), ("-9223372036854775808", -(2**63)), ("9223372036854775807", 2**63 - 1),
        ("9007199254740993", 9007199254740993), ("-1L", -1), ("CAST(-7 AS BIGINT)", -7),
    ],
    "float": [("1.5F", 1.5), ("0.1F", float(np.float32(0.1))), ("-0.0F", -0.0), ("CAST(-0.0 AS FLOAT)", 0.0)],
    "double": [("1e0", 1.0), ("0.1D", 0.1), ("-2.5E3", -2500.0), ("0e0", 0.0), ("-0.0D", -0.0), ("9.3e18", 9.3e18)],
    "decimal": [
        ("1.5", Decimal("1.5")), ("-0.5", Decimal("-0.5")), ("0.1", Decimal("0.1")), ("2.0", Decimal("2.0")),
        ("9223372036854775808", Decimal(2**63)), ("127.9", Decimal("127.9")), ("0.0", Decimal("0.0")),
    ],
    "boolean": [("true", True), ("false", False)],
    "string": [
        ("''", ""), ("'a'", "a"), ("'b'", "b"), ("'ab'", "ab"), ("'é'", "é"), ("'A'", "A"),
        ("'z\U0001f600'", "z\U0001f600"), ("'it\\'s'", "it's"), ("'\\\\'", "\\"), ("'x\\ty'", "x\ty"),
    ],
    "date": [
        ("DATE '1970-01-01'", 0), ("DATE '2024-02-29'", 19782), ("'1969-12-31'", -1),
        ("DATE '0001-01-01'", -719162), ("CAST('2024-02-29' AS DATE)", 19782),
    ],
    "timestamp": [
        ("TIMESTAMP '1970-01-01 00:00:00'", 0), ("TIMESTAMP '2024-02-29 12:34:56.789'", 1709210096789000),
        ("'1969-12-31 23:59:59.999999'", -1), ("TIMESTAMP '2024-02-29'", 19782 * DAY),
    ],
    "void": [("NULL", None)],
}  # fmt: skip


class Grammar:
    """Draws expressions over columns (name to type)."""

    def __init__(self, random: Random, columns: dict[str, str]) -> None:
        self.random = random
        self.columns = columns

    def any(self, depth: int) -> Expression:
        draw = self.random.random()
        if draw < 0.6:
            return self.numeric(depth)
        return self.predicate(depth) if draw < 0.85 else self.column(self.random.choice(list(self.columns)))

    def column(self, name: str) -> Expression:
        return Expression("col", self.columns[name], text=name)

    def literal(self, kind: str) -> Expression:
        text, value = self.random.choice(LITERALS[kind])
        return Expression("lit", kind, text=text, value=value)

    def of(self, kinds: tuple[str, ...]) -> Expression:
        """A column of one of the types, or a literal where there is none."""
        names = [name for name, kind in self.columns.items() if kind in kinds]
        if names and self.random.random() < 0.85:
            return self.column(self.random.choice(names))
        return self._spelled(self.random.choice(kinds))

    def _spelled(self, kind: str) -> Expression:
        """A literal whose own text says its type (a quoted date needs a neighbour for that)."""
        text, value = self.random.choice([x for x in LITERALS[kind] if kind == "string" or x[0][0] != "'"])
        return Expression("lit", kind, text=text, value=value)

    def numeric(self, depth: int) -> Expression:
        if depth == 0 or self.random.random() < 0.25:
            return self.of(NUMERIC)
        if self.random.random() < 0.15:
            inner = self.numeric(depth - 1)
            return Expression("neg", inner.type, (inner,))
        op = self.random.choice("+-*/%")
        left, right = self.numeric(depth - 1), self.numeric(depth - 1)
        draw = self.random.random()
        if draw < 0.35:
            right = self.literal(self.random.choice(NUMERIC))
        elif draw < 0.4:
            right = self.literal("void")
        elif draw < 0.5 and left.type in ("float", "double"):
            right = self.literal("decimal")
        if self.random.random() < 0.3:
            left, right = right, left
        kind = "double" if op == "/" else common(left.type, right.type)
        return Expression(op, kind, (left, right))

    def operand(self, depth: int) -> Expression:
        """Something that can be compared."""
        draw = self.random.random()
        if draw < 0.55:
            return self.numeric(depth)
        if draw < 0.65:
            return self.predicate(depth)
        return self.of(("string",)) if draw < 0.8 else self.of(("date", "timestamp"))

    def peer(self, other: Expression, depth: int) -> Expression:
        """Something that ``other`` can be compared with."""
        kind, draw = other.type, self.random.random()
        if draw < 0.05:
            return self.literal("void")
        if kind in NUMERIC:
            if draw < 0.35:
                return self.numeric(depth)
            return self.literal(self.random.choice((*NUMERIC, "decimal")))
        if draw < 0.6:
            return self.literal(kind)
        if kind in ("date", "timestamp"):
            return self.of(("date", "timestamp"))
        return self.predicate(depth) if kind == "boolean" else self.of((kind,))

    def predicate(self, depth: int) -> Expression:
        draw = self.random.random()
        if depth > 0 and draw < 0.3:
            pair = (self.predicate(depth - 1), self.predicate(depth - 1))
            return Expression(self.random.choice(("AND", "OR")), "boolean", pair)
        if depth > 0 and draw < 0.4:
            return Expression("NOT", "boolean", (self.predicate(depth - 1),))
        if draw < 0.45 or (depth == 0 and draw < 0.5):
            return self.of(("boolean",))
        return self._test(max(depth - 1, 0), draw)

    def _test(self, depth: int, draw: float) -> Expression:
        x = self.operand(depth)
        if draw < 0.52:
            return Expression(self.random.choice(("IS NULL", "IS NOT NULL")), "boolean", (x,))
        if draw < 0.56:
            words = ("IS TRUE", "IS NOT TRUE", "IS FALSE")
            return Expression(self.random.choice(words), "boolean", (self.predicate(depth),))
        if draw < 0.67:
            return Expression("BETWEEN", "boolean", (x, self.peer(x, depth), self.peer(x, depth)))
        if draw < 0.78:
            kinds = (*NUMERIC, "decimal") if x.type in NUMERIC else (x.type,)
            items = [self.literal(self.random.choice(kinds)) for _ in range(self.random.choice((1, 2, 3, 9)))]
            if self.random.random() < 0.2:
                items.append(self.literal("void"))
            return Expression("IN", "boolean", (x, *items))
        op = self.random.choice(("=", "<>", "<", "<=", ">", ">=", "<=>"))
        pair = (x, self.peer(x, depth))
        return Expression(op, "boolean", pair if self.random.random() < 0.8 else pair[::-1])
