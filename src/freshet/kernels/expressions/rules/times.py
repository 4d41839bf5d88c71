"""Fields of dates and timestamps, counts since 1970, truncation and days added; in the session's time zone, UTC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.conversion import MICROS_PER_DAY
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import FunctionRule, Node, fixed
from freshet.kernels.expressions.rules.casts import cast
from freshet.kernels.expressions.types import (
    BIGINT,
    DATE,
    DTYPES,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_integral,
    name,
)
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Value, both, total

TimeKernel = Callable[[Any], Any]

_SECOND: Final = 1_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE


def _mapped(label: str, node: Node, kind: pa.DataType, kernel: TimeKernel, cost: float = 10.0) -> Node:
    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        return Value(kernel(value.values).astype(DTYPES[kind], copy=False), value.valid, value.errors)

    return Node(kind, f"{label}({node.key})", evaluate, (node,), cost)


def _of_day(label: str, kernel: TimeKernel) -> FunctionRule:
    """A field of a date; a timestamp becomes its date first."""
    return fixed(1, lambda node: _mapped(label, _date(node, label), INT, kernel))


def _date(node: Node, label: str) -> Node:
    if node.kind not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        raise Unsupported(f"{label} of {name(node.kind)}")
    return cast(node, DATE)


def _of_time(label: str, kind: pa.DataType, kernel: TimeKernel) -> FunctionRule:
    """A number made of a timestamp."""
    return fixed(1, lambda node: _mapped(label, _checked(node, label, TIMESTAMP), kind, kernel))


def _checked(node: Node, label: str, kind: pa.DataType) -> Node:
    if node.kind != kind:
        raise Unsupported(f"{label} of {name(node.kind)}")
    return node


def _days(values: Any) -> Any:
    return values.astype("datetime64[D]")


def _whole(values: Any, unit: str) -> Any:
    """Years or months since 1970 of dates given as days."""
    return _days(values).astype(f"datetime64[{unit}]").astype(np.int64)


def _first_day(values: Any, unit: str) -> Any:
    return _days(values).astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(np.int64)


def _quarter_start(values: Any) -> Any:
    months = _whole(values, "M")
    return (months - months % 3).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _week_start(values: Any) -> Any:
    days = values.astype(np.int64)
    return days - (days + 3) % 7


_DAY_STARTS: Final[dict[str, TimeKernel]] = {
    **dict.fromkeys(("year", "yyyy", "yy"), lambda days: _first_day(days, "Y")),
    "quarter": _quarter_start,
    **dict.fromkeys(("month", "mon", "mm"), lambda days: _first_day(days, "M")),
    "week": _week_start,
}
_STEPS: Final = {
    "microsecond": 1, "millisecond": 1000, "second": _SECOND, "minute": _MINUTE, "hour": _HOUR,
    "day": MICROS_PER_DAY, "dd": MICROS_PER_DAY,
}  # fmt: skip


def truncate(unit: Node, node: Node) -> Node:
    """``date_trunc``: the start of the hour, month, ... that a timestamp lies in."""
    word = _unit(unit)
    label = f"date_trunc:{word}"
    _checked(node, "date_trunc", TIMESTAMP)
    step, start = _STEPS.get(word), _DAY_STARTS.get(word)
    if step is None and start is None:
        raise Unsupported(f"date_trunc to {word}")

    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        micros = value.values
        made = micros - micros % step if start is None else start(micros // MICROS_PER_DAY) * MICROS_PER_DAY
        beyond = made > micros
        if np.any(beyond if value.valid is None else beyond & value.valid):
            raise OverflowError("date_trunc to a time before all timestamps")  # as Spark does, which has no try_ form
        return Value(made, value.valid, value.errors)

    return Node(TIMESTAMP, f"{label}({node.key})", evaluate, (node,), 10.0 if start is None else 30.0)


def _truncate_date(node: Node, unit: Node) -> Node:
    word = _unit(unit)
    start = _DAY_STARTS.get(word)
    if start is None:
        raise Unsupported(f"trunc to {word}")
    return _mapped(f"trunc:{word}", _checked(node, "trunc", DATE), DATE, start, 30.0)


def _unit(node: Node) -> str:
    if node.kind != STRING or not node.is_constant or node.is_null:
        raise Unsupported("a truncation to anything but a literal unit")
    return str(node.constant).lower()


def _relabel(node: Node) -> Node:
    """``timestamp_micros``; now() becomes this function of the arrival."""
    if not is_integral(node.kind):
        raise Unsupported(f"timestamp_micros of {name(node.kind)}")
    return _mapped("timestamp_micros", node, TIMESTAMP, lambda values: values, 0.0 if node.kind == BIGINT else 1.0)


def _shifted(sign: str) -> FunctionRule:
    """``date_add`` and ``date_sub``, which wrap around silently as in Spark."""

    def function(node: Node, days: Node) -> Node:
        start = _checked(node, "date_add", DATE)
        if not is_integral(days.kind) or days.kind == BIGINT:
            raise Unsupported(f"date_add of {name(days.kind)}")

        def evaluate(frame: Frame) -> Value:
            one, two = start(frame), days(frame)
            shift = two.values.astype(np.int32, copy=False)
            moved = one.values + shift if sign == "+" else one.values - shift
            return Value(moved, both(one.valid, two.valid), total(one.errors, two.errors))

        return Node(DATE, f"date_add({start.key}{sign}{days.key})", evaluate, (start, days), 2.0)

    return fixed(2, function)


def _distance(end: Node, start: Node) -> Node:
    for node in (end, start):
        _checked(node, "datediff", DATE)

    def evaluate(frame: Frame) -> Value:
        one, two = end(frame), start(frame)
        return Value(one.values - two.values, both(one.valid, two.valid), total(one.errors, two.errors))

    return Node(INT, f"datediff({end.key},{start.key})", evaluate, (end, start), 2.0)


_DAY_FIELDS: Final[dict[str, TimeKernel]] = {
    "year": lambda days: _whole(days, "Y") + 1970,
    "quarter": lambda days: _whole(days, "M") % 12 // 3 + 1,
    "month": lambda days: _whole(days, "M") % 12 + 1,
    "day": lambda days: days - _first_day(days, "M") + 1,
    "dayofmonth": lambda days: days - _first_day(days, "M") + 1,
    "dayofyear": lambda days: days - _first_day(days, "Y") + 1,
    "dayofweek": lambda days: (days.astype(np.int64) + 4) % 7 + 1,
    "weekday": lambda days: (days.astype(np.int64) + 3) % 7,
}
_TIME_FIELDS: Final[dict[str, tuple[pa.DataType, TimeKernel]]] = {
    "hour": (INT, lambda micros: micros % MICROS_PER_DAY // _HOUR),
    "minute": (INT, lambda micros: micros % _HOUR // _MINUTE),
    "second": (INT, lambda micros: micros % _MINUTE // _SECOND),
    "unix_micros": (BIGINT, lambda micros: micros),
    "unix_millis": (BIGINT, lambda micros: micros // 1000),
    "unix_seconds": (BIGINT, lambda micros: micros // _SECOND),
}

FUNCTIONS: Final[dict[str, FunctionRule]] = {
    **{label: _of_day(label, kernel) for label, kernel in _DAY_FIELDS.items()},
    **{label: _of_time(label, kind, kernel) for label, (kind, kernel) in _TIME_FIELDS.items()},
    "date_trunc": fixed(2, truncate),
    "trunc": fixed(2, _truncate_date),
    "timestamp_micros": fixed(1, _relabel),
    "date_add": _shifted("+"),
    "date_sub": _shifted("-"),
    "datediff": fixed(2, _distance),
    "date_diff": fixed(2, _distance),
}
