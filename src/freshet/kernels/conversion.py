"""Implicit casts, which never fail: to a wider number, from a date to a timestamp, from NULL to any type."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from freshet.kernels.frame import Frame
from freshet.kernels.node import Node, literal
from freshet.kernels.types import DATE, DOUBLE, DTYPES
from freshet.kernels.value import Value

MICROS_PER_DAY: Final = 86_400_000_000


def convert(node: Node, kind: pa.DataType) -> Node:
    """The node as a value of a wider type. In the session's time zone, UTC, both kinds of timestamps are one number."""
    if node.kind == kind:
        return node
    if node.is_constant:
        return literal(kind, _constant(node, kind))
    dtype, scale = DTYPES[kind], MICROS_PER_DAY if node.kind == DATE else 1

    def widen(frame: Frame) -> Value:
        value = node(frame)
        values = value.values.astype(dtype, copy=False)
        return Value(values if scale == 1 else values * np.int64(scale), value.valid, value.errors)

    return Node(kind, f"{kind}({node.key})", widen, (node,))


def _constant(node: Node, kind: pa.DataType) -> Any:
    if node.is_null:
        return None
    if kind == DOUBLE:
        return float(node.constant)
    return node.constant * MICROS_PER_DAY if node.kind == DATE else node.constant
