"""CAST and TRY_CAST between numbers, booleans, times and, if exact, text; a value that does not fit is an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from freshet.kernels.expressions.arrow import decode, encode
from freshet.kernels.expressions.conversion import MICROS_PER_DAY, convert
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import FunctionRule, Node, Rule, RuleScope, fixed
from freshet.kernels.expressions.rules.literals import NUMBERS, TIMES, cast_literal
from freshet.kernels.expressions.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    DTYPES,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    is_fractional,
    is_integral,
    name,
)
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Mask, Value, fail_where
from freshet.sql.parse.dialect import Suffixed

CastKernel = Callable[[Any], tuple[Any, Mask | None]]
"""Returns the results, and the rows where they are wrong (None: nowhere)."""

_TARGETS: Final = {**NUMBERS, **TIMES, exp.DataType.Type.BOOLEAN: BOOLEAN, exp.DataType.Type.TEXT: STRING}
_MICROS: Final = 1_000_000
_LAST_DAY: Final = (2**63 - 1) // MICROS_PER_DAY
"""The last day that has timestamps, counted from 1970; the first is as many days before 1970."""


def cast(node: Node, kind: pa.DataType, counted: bool = True) -> Node:
    """The node as a value of another type; NULL where it does not fit, which is an error if ``counted``.

    >>> from freshet.kernels.expressions.node import literal
    >>> cast(literal(DOUBLE, 1.75), pa.int8())(Frame(1, [])).values.tolist()
    [1]
    """
    if node.kind in (kind, VOID):
        return convert(node, kind)
    if kind == STRING:
        return _to_text(node)
    kernel = _kernel(node.kind, kind)

    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        values, wrong = kernel(value.values)
        if wrong is None:
            return Value(values, value.valid, value.errors)
        made = fail_where(Value(values, value.valid, value.errors), wrong)
        return made if counted else Value(made.values, made.valid, value.errors)

    return Node(kind, f"{'' if counted else 'TRY_'}CAST({node.key},{kind})", evaluate, (node,), 2.0)


def _kernel(source: pa.DataType, target: pa.DataType) -> CastKernel:
    numeric = is_integral(target) or is_fractional(target)
    if source == BOOLEAN and numeric:
        return _plain(DTYPES[target])
    if is_integral(source) and numeric and not _loses_digits(source, target):
        return _plain(DTYPES[target]) if _holds(source, target) else _narrow(DTYPES[target])
    if is_fractional(source) and numeric:
        return _plain(DTYPES[target]) if is_fractional(target) else _truncate(DTYPES[target])
    if (is_integral(source) or is_fractional(source)) and target == BOOLEAN:
        return lambda values: (np.not_equal(values, 0), None)
    if source == STRING and (is_integral(target) or target == DOUBLE):
        return _from_text(target)
    special = _TIME_KERNELS.get((source, target))
    if special is None:
        raise Unsupported(f"CAST of {name(source)} to {name(target)}")
    return special


def _loses_digits(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a float has too few digits for all integers. If such a float becomes a double, Spark's optimizer drops
    the cast between and keeps all digits. So the value depends on the context, and is left to Spark."""
    return target == FLOAT and DTYPES[source].itemsize > 2


def _holds(source: pa.DataType, target: pa.DataType) -> bool:
    return is_fractional(target) or DTYPES[source].itemsize <= DTYPES[target].itemsize


def _plain(dtype: np.dtype[np.generic]) -> CastKernel:
    return lambda values: (values.astype(dtype), None)


def _narrow(dtype: np.dtype[np.generic]) -> CastKernel:
    def kernel(values: Any) -> tuple[Any, Mask]:
        made = values.astype(dtype)
        return made, np.not_equal(made, values)

    return kernel


def _truncate(dtype: np.dtype[np.generic]) -> CastKernel:
    """Towards zero. As in Spark the limits are compared as doubles, so that 2**63 becomes the largest bigint."""
    limits = np.iinfo(dtype.name)
    low, high = float(limits.min), float(limits.max)

    def kernel(values: Any) -> tuple[Any, Mask]:
        whole = np.trunc(values).astype(np.float64, copy=False)
        wrong = ~((whole <= high) & (whole >= low))
        made = np.where(wrong, 0.0, whole).astype(np.int64)
        if dtype.itemsize == 8:
            made = np.where(whole == high, np.int64(limits.max), made)
        return made.astype(dtype, copy=False), wrong

    return kernel


_BLANKS: Final = "".join(map(chr, range(33))) + "\x7f"
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
_HEXADECIMAL: Final = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[dDfF]?")
_INFINITE: Final = {f"{sign}{word}": float(f"{sign}inf") for sign in ("", "+", "-") for word in ("inf", "infinity")}
_NAMED: Final = {**_INFINITE, "nan": float("nan")}


def _from_text(target: pa.DataType) -> CastKernel:
    dtype = DTYPES[target]
    if target == DOUBLE:
        return lambda text: text.numbers(parse_double, dtype)
    limits = np.iinfo(dtype.name)
    return lambda text: text.numbers(lambda word: parse_whole(word, int(limits.min), int(limits.max)), dtype)


def parse_whole(word: str, low: int, high: int) -> int | None:
    """The integer in a text; None if there is none within the limits.

    >>> parse_whole(" +07 ", -128, 127), parse_whole("1.0", -128, 127)
    (7, None)
    """
    word = word.strip(_BLANKS)
    if not _WHOLE.fullmatch(word):
        return None
    digits = word.lstrip("+-").lstrip("0")
    if len(digits) > 19:
        return None
    number = int(digits or "0") * (-1 if word[0] == "-" else 1)
    return number if low <= number <= high else None


def parse_double(word: str) -> float | None:
    """The double that Java reads from a text; None if it reads none.

    >>> parse_double("1e3d"), parse_double("-Inf"), parse_double("0x1p-1"), parse_double("e")
    (1000.0, -inf, 0.5, None)
    """
    word = word.strip(_BLANKS[:-1])
    decimal = _DECIMAL.fullmatch(word)
    if decimal is not None:
        return float(decimal[1])
    hexadecimal = _HEXADECIMAL.fullmatch(word)
    if hexadecimal is None:
        return _NAMED.get(word.lower())
    try:
        return float.fromhex(hexadecimal[1])
    except OverflowError:
        return float("-inf") if word[0] == "-" else float("inf")


def _to_text(node: Node) -> Node:
    if not is_integral(node.kind) and node.kind != BOOLEAN:
        raise Unsupported(f"CAST of {name(node.kind)} to string")

    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        made = decode(pc.cast(encode(value, node.kind), STRING))
        return Value(made.values, made.valid, value.errors, made.array)

    return Node(STRING, f"CAST({node.key},string)", evaluate, (node,), 30.0)


def _seconds(values: Any) -> Any:
    return np.floor_divide(values, _MICROS)


def _days(values: Any) -> tuple[Any, None]:
    return np.floor_divide(values, MICROS_PER_DAY).astype(np.int32), None


def _midnights(values: Any) -> tuple[Any, Mask]:
    days = values.astype(np.int64)
    return days * MICROS_PER_DAY, np.abs(days) > _LAST_DAY


_TIME_KERNELS: Final[dict[tuple[pa.DataType, pa.DataType], CastKernel]] = {
    (DATE, TIMESTAMP): _midnights,
    (DATE, TIMESTAMP_NTZ): _midnights,
    (TIMESTAMP, DATE): _days,
    (TIMESTAMP_NTZ, DATE): _days,
    (TIMESTAMP, TIMESTAMP_NTZ): lambda values: (values, None),
    (TIMESTAMP_NTZ, TIMESTAMP): lambda values: (values, None),
    (TIMESTAMP, BIGINT): lambda values: (_seconds(values), None),
    (TIMESTAMP, INT): lambda values: _narrow(np.dtype(np.int32))(_seconds(values)),
    (TIMESTAMP, DOUBLE): lambda values: (np.divide(values, float(_MICROS)), None),
}


def _cast_rule(scope: RuleScope, expression: exp.Cast) -> Node:
    try:
        return cast_literal(expression)
    except Unsupported:
        inner = expression.this
        if isinstance(inner, exp.Literal) and inner.is_string:
            raise
        target = _TARGETS.get(expression.to.this)
        if target is None or expression.args.get("format"):
            raise Unsupported(f"CAST of {inner.sql('spark')} to {expression.to.sql('spark')}") from None
        return cast(scope.compile(inner), target, counted=not isinstance(expression, exp.TryCast))


def _named(kind: pa.DataType) -> FunctionRule:
    return fixed(1, lambda node: cast(node, kind))


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Cast: _cast_rule,
    exp.TryCast: _cast_rule,
    Suffixed: _cast_rule,
}
FUNCTIONS: Final[dict[str, FunctionRule]] = {
    "tinyint": _named(pa.int8()),
    "smallint": _named(pa.int16()),
    "int": _named(INT),
    "bigint": _named(BIGINT),
    "float": _named(FLOAT),
    "double": _named(DOUBLE),
    "boolean": _named(BOOLEAN),
    "string": _named(STRING),
    "date": _named(DATE),
    "timestamp": _named(TIMESTAMP),
}
