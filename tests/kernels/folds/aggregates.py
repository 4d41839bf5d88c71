"""Aggregates of lists, slow and obviously right; and how close an answer must be to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa

from freshet.model import Call

NAN = float("nan")


def group_key(value: Any) -> Any:
    """Equal for values that Spark puts into one group."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def order_key(value: Any) -> Any:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def expected(call: Call, values: Sequence[Any], kind: pa.DataType | None) -> Any:
    """What Spark answers; the exact quantile for approx_percentile."""
    if call.column is None:
        return len(values)
    some = [value for value in values if value is not None]
    if call.function == "count":
        return len(some)
    if call.function == "count_distinct":
        return len({group_key(value) for value in some})
    if not some:
        return None
    if call.function in ("min", "max"):
        return (min if call.function == "min" else max)(some, key=order_key)
    if call.function == "approx_percentile":
        rank = max(math.ceil((call.parameter or 0.0) * len(some)), 1)
        return sorted(some, key=order_key)[rank - 1]
    if isinstance(some[0], Decimal):
        return _decimals(call.function, some, kind)
    if call.function == "sum":
        if isinstance(some[0], int):
            return sum(some) if -(2**63) <= sum(some) < 2**63 else None
        return math.fsum(some) if all(map(math.isfinite, some)) else sum(some)
    if not all(map(math.isfinite, some)):
        return sum(some) / len(some) if call.function == "avg" else _spread_of_unfinite(call.function, len(some))
    exact = [Fraction(value) for value in some]
    if call.function == "avg":
        return float(sum(exact) / len(exact))
    return _spread(call.function, exact)


def _decimals(function: str, some: Sequence[Decimal], kind: Any) -> Any:
    with localcontext() as context:
        context.prec = 200
        total = sum(some, Decimal(0))
        if function == "sum":
            return total if abs(total) < Decimal(10) ** (min(38, kind.precision + 10) - kind.scale) else None
        if function == "avg":
            mean = (total / len(some)).quantize(Decimal(1).scaleb(-min(38, kind.scale + 4)), ROUND_HALF_UP)
            return mean if abs(mean) < Decimal(10) ** (min(38, kind.precision + 4) - min(38, kind.scale + 4)) else None
    return _spread(function, [Fraction(value) for value in some])


def _spread(function: str, exact: Sequence[Fraction]) -> float | None:
    mean = sum(exact) / len(exact)
    used = 1 if function.endswith("samp") else 0
    if len(exact) <= used:
        return None
    spread = float(sum((value - mean) ** 2 for value in exact) / (len(exact) - used))
    return math.sqrt(spread) if function.startswith("stddev") else spread


def _spread_of_unfinite(function: str, count: int) -> float | None:
    return None if function.endswith("samp") and count < 2 else NAN


def close(call: Call, got: Any, want: Any, values: Sequence[Any]) -> Any:
    """Whether an answer is right: exactly, but for floating-point sums and approximate quantiles."""
    if got is None or want is None:
        return got is None and want is None
    if call.function == "approx_percentile":
        if isinstance(want, float) and not math.isfinite(want):
            return group_key(got) == group_key(want)
        return abs(float(got) - float(want)) <= 0.00501 * abs(float(want)) + (0 if isinstance(want, float) else 0.51)
    if isinstance(want, float) and call.function not in ("min", "max"):
        if not math.isfinite(want):
            return group_key(got) == group_key(want)
        size = math.fsum(abs(float(value)) for value in values if value is not None and math.isfinite(value))
        scale = size if call.function in ("sum", "avg") else abs(want) + 1e-12 * size**2 * 1e-6
        return abs(got - want) <= 1e-9 * max(scale, 1e-300)
    return group_key(got) == group_key(want)
