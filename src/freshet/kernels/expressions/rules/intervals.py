"""Literal intervals of days and parts of days, added to timestamps. Months and years are left to Spark's calendar."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from freshet.kernels.expressions.conversion import MICROS_PER_DAY
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import Node, Rule, literal
from freshet.kernels.expressions.overflow import add, subtract
from freshet.kernels.expressions.types import TIMESTAMP, TIMESTAMP_NTZ, name
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Value, fail_where

INTERVAL: Final = pa.duration("us")
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_UNITS: Final = {
    "microsecond": 1, "millisecond": 1000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
    "day": MICROS_PER_DAY, "week": 7 * MICROS_PER_DAY,
}  # fmt: skip


def interval(expression: exp.Interval) -> Node:
    """``INTERVAL 5 MINUTES`` as a literal in microseconds."""
    unit = str(expression.args.get("unit") or "").lower().removesuffix("s")
    amount = expression.this
    if not isinstance(amount, exp.Literal) or not _WHOLE.fullmatch(amount.this) or unit not in _UNITS:
        raise Unsupported(f"{expression.sql('spark')}")
    return _literal(int(amount.this) * _UNITS[unit])


def _literal(micros: int) -> Node:
    if not -(2**63) < micros < 2**63:
        raise Unsupported("an interval beyond all timestamps")
    return literal(INTERVAL, micros)


def shifted(sign: str, left: Node, right: Node) -> Node:
    """A timestamp and an interval, or two literal intervals (``INTERVAL 1 DAY 2 HOURS`` comes as a sum)."""
    if left.kind == INTERVAL and right.kind == INTERVAL and sign == "+":
        return _literal(left.constant + right.constant)
    if left.kind == INTERVAL and sign == "+":
        left, right = right, left
    if left.kind not in (TIMESTAMP, TIMESTAMP_NTZ) or right.kind != INTERVAL:
        raise Unsupported(f"{name(left.kind)} {sign} {name(right.kind)}")
    operation = add if sign == "+" else subtract
    micros = np.int64(right.constant)

    def evaluate(frame: Frame) -> Value:
        value = left(frame)
        moved, wrong = operation(value.values, micros)
        return fail_where(Value(moved, value.valid, value.errors), wrong)

    return Node(left.kind, f"({left.key}{sign}{right.key})", evaluate, (left,), 3.0)


RULES: Final[dict[type[exp.Expression], Rule]] = {exp.Interval: lambda scope, expression: interval(expression)}
