"""Literals, with the types that Spark's parser gives them."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from freshet.kernels.expressions.node import Node, Rule, RuleScope, literal
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
)
from freshet.kernels.expressions.unsupported import Unsupported

NUMBERS: Final = {
    exp.DataType.Type.TINYINT: pa.int8(),
    exp.DataType.Type.SMALLINT: pa.int16(),
    exp.DataType.Type.INT: INT,
    exp.DataType.Type.BIGINT: BIGINT,
    exp.DataType.Type.FLOAT: FLOAT,
    exp.DataType.Type.DOUBLE: DOUBLE,
}
TIMES: Final = {
    exp.DataType.Type.DATE: DATE,
    exp.DataType.Type.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    exp.DataType.Type.TIMESTAMP: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPLTZ: TIMESTAMP,
}
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?")
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


def number(text: str) -> Node:
    """A number without suffix: INT, BIGINT or DECIMAL by its digits, DOUBLE with an exponent.

    >>> [str(number(text).kind) for text in ("1", "2147483648", "1.50", "1e3")]
    ['int32', 'int64', 'decimal128(3, 2)', 'double']
    """
    if "e" in text.lower():
        return literal(DOUBLE, _finite(float(text)))
    if text.lstrip("-").isdigit():
        for kind in (INT, BIGINT):
            if _fits(int(text), kind):
                return literal(kind, int(text))
    exact = Decimal(text)
    scale = max(0, -int(exact.as_tuple().exponent))
    precision = max(len(exact.as_tuple().digits), scale)
    if precision > 38:
        raise Unsupported("a decimal of more than 38 digits")
    return literal(pa.decimal128(precision, scale), exact)


def moment(text: str, kind: pa.DataType) -> Node:
    """A date or timestamp written in full; other spellings are left to Spark.

    >>> moment("1970-01-02", DATE).constant, moment("1970-01-01 00:00:01.5", TIMESTAMP).constant
    (1, 1500000)
    """
    match = _MOMENT.fullmatch(text)
    if match is None or (kind == DATE and match[2]):
        raise Unsupported(f"the spelling {text!r} of a {'date' if kind == DATE else 'timestamp'}")
    hour, minute, second = (int(part or 0) for part in match.group(2, 3, 4))
    try:
        days = date.fromisoformat(match[1]).toordinal() - _EPOCH_DAY
    except ValueError:
        raise Unsupported(f"{text!r} is no date") from None
    if hour > 23 or minute > 59 or second > 59:
        raise Unsupported(f"{text!r} is no time of day")
    if kind == DATE:
        return literal(DATE, days)
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    return literal(kind, seconds * 1_000_000 + int((match[5] or "").ljust(6, "0")))


def cast_literal(expression: exp.Cast, sign: str = "") -> Node:
    """A cast of a literal: ``CAST(5 AS BIGINT)``; sqlglot reads ``5L`` and ``DATE '2026-01-31'`` as casts, too."""
    inner, target = expression.this, expression.to.this
    inside = isinstance(inner, exp.Neg)
    if inside:
        inner = inner.this
    if not isinstance(inner, exp.Literal):
        raise Unsupported("CAST")
    if inner.is_string and not inside and not sign and target in TIMES:
        return moment(inner.this, TIMES[target])
    if inner.is_string or target not in NUMBERS or (sign and inside):
        raise Unsupported("CAST")
    node = _as(NUMBERS[target], f"-{inner.this}" if inside else f"{sign}{inner.this}")
    # A decimal has no negative zero, and neither has its cast. With an exponent it is a double, which has one.
    exact = inside and "e" not in inner.this.lower()
    return literal(node.kind, 0.0) if exact and node.constant == 0.0 and is_fractional(node.kind) else node


def _as(kind: pa.DataType, text: str) -> Node:
    if is_fractional(kind):
        return literal(kind, _finite(float(text)) if kind == DOUBLE else _float(text))
    if not text.lstrip("-").isdigit() or not _fits(int(text), kind):
        raise Unsupported(f"CAST of {text}")
    return literal(kind, int(text))


def _literal(scope: RuleScope, expression: exp.Literal) -> Node:
    return literal(STRING, expression.this) if expression.is_string else number(expression.this)


def _fits(value: int, kind: pa.DataType) -> bool:
    limits = np.iinfo(DTYPES[kind].name)
    return bool(limits.min <= value <= limits.max)


def _finite(value: float) -> float:
    if not np.isfinite(value):
        raise Unsupported("a number too large for double")
    return value


def _float(text: str) -> float:
    value = float(text)
    # Rounding twice (to double, then to float) differs from rounding once only midway between two floats.
    if np.float64(value).view(np.int64) & 0x1FFFFFFF == 0x10000000 and Decimal(text) != Decimal(value):
        raise Unsupported(f"{text} as a float")
    with np.errstate(over="ignore"):
        return _finite(float(np.float32(value)))


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Literal: _literal,
    exp.Null: lambda scope, expression: literal(VOID, None),
    exp.Boolean: lambda scope, expression: literal(BOOLEAN, bool(expression.this)),
}
