"""Comparisons of an integer column with any exact number, expressed in the column's own type."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import NamedTuple

import numpy as np


def is_bigint(number: Decimal | int) -> bool:
    """Whether a number lies between the smallest and the largest bigint.

    >>> is_bigint(2**63 - 1), is_bigint(Decimal("9223372036854775807.5"))
    (True, False)
    """
    return -(2**63) <= number <= 2**63 - 1


class Bound(NamedTuple):
    """``column <sign> constant`` with a constant that the column's type can hold."""

    sign: str
    constant: int


def bound(sign: str, number: Decimal, dtype: np.dtype[np.generic]) -> Bound | bool:
    """The comparison in the column's type, or its answer if all values of that type have the same.

    >>> bound("<", Decimal("1.5"), np.dtype(np.int8)).sign, bound("<", Decimal(300), np.dtype(np.int8))
    ('<', True)
    """
    whole = number.to_integral_value(ROUND_CEILING if sign in ("<", ">=") else ROUND_FLOOR)
    limits = np.iinfo(dtype.name)
    if sign in ("=", "<>") and (whole != number or not limits.min <= whole <= limits.max):
        return sign == "<>"
    if whole > limits.max:
        return sign in ("<", "<=")
    if whole < limits.min:
        return sign in (">", ">=")
    return Bound(sign, int(whole))
