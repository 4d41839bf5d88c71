"""Implicit casts, which never fail: to a wider number, from a date to a timestamp, from NULL to any type."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import Node, literal
from freshet.kernels.expressions.types import DATE, DOUBLE, DTYPES, is_decimal
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Value

MICROS_PER_DAY: Final = 86_400_000_000
_EXACT_INTEGERS: Final = 2**53
_EXACT_POWERS: Final = 22
"""10**22 is the last power of ten that a double holds exactly."""


def convert(node: Node, kind: pa.DataType) -> Node:
    """The node as a value of a wider type. In the session's time zone, UTC, both kinds of timestamps are one number."""
    if node.kind == kind:
        return node
    if node.is_constant:
        return literal(kind, _constant(node, kind))
    if is_decimal(node.kind):
        return _double_of_decimal(node, kind)
    dtype, scale = DTYPES[kind], MICROS_PER_DAY if node.kind == DATE else 1

    def widen(frame: Frame) -> Value:
        value = node(frame)
        values = value.values.astype(dtype, copy=False)
        return Value(values if scale == 1 else values * np.int64(scale), value.valid, value.errors)

    return Node(kind, f"{kind}({node.key})", widen, (node,))


def _double_of_decimal(node: Node, kind: pa.DataType) -> Node:
    if kind != DOUBLE:
        raise Unsupported(f"a decimal as {kind}")

    def widen(frame: Frame) -> Value:
        value = node(frame)
        return Value(nearest_doubles(value.values), value.valid, value.errors)

    return Node(kind, f"{kind}({node.key})", widen, (node,), 5.0)


def nearest_doubles(decimals: pa.Array) -> npt.NDArray[np.float64]:
    """The double nearest to each decimal, as in Java; a cast by Arrow can be one bit off.

    >>> nearest_doubles(pa.array([None, "1.10"]).cast(pa.decimal128(38, 2))).tolist()
    [0.0, 1.1]
    """
    if decimals.null_count:
        decimals = decimals.fill_null(pa.scalar(Decimal(0), decimals.type))
    if decimals.type.bit_width != 128:
        decimals = decimals.cast(pa.decimal128(decimals.type.precision, decimals.type.scale))
    words = np.frombuffer(decimals.buffers()[1] or b"", np.int64).reshape(-1, 2)
    words = words[decimals.offset : decimals.offset + len(decimals)]
    low, high, scale = words[:, 0], words[:, 1], decimals.type.scale
    # The quotient of two exact numbers is rounded only once.
    exact = (high == low >> 63) & (np.abs(low) <= _EXACT_INTEGERS) & (scale <= _EXACT_POWERS)
    made: npt.NDArray[np.float64] = low / 10.0**scale
    for place in np.flatnonzero(~exact).tolist():
        made[place] = float(decimals[place].as_py())
    return made


def _constant(node: Node, kind: pa.DataType) -> Any:
    if node.is_null:
        return None
    if kind == DOUBLE:
        return float(node.constant)
    return node.constant * MICROS_PER_DAY if node.kind == DATE else node.constant
