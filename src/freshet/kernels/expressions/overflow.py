"""Integer arithmetic that tells where it overflowed; both sides have one type, and one may be a single number."""

from __future__ import annotations

from typing import Any

import numpy as np

from freshet.kernels.expressions.value import Mask


def add(a: Any, b: Any) -> tuple[Any, Mask]:
    """The sum, and where it is wrong: where both sides have the same sign and the sum has the other.

    >>> total, wrong = add(np.array([1, 127], np.int8), np.int8(1))
    >>> total.tolist(), wrong.tolist()
    ([2, -128], [False, True])
    """
    result = np.add(a, b)
    if b.ndim == 0:
        return result, (result < a) if b >= 0 else (result > a)
    return result, ((a ^ result) & (b ^ result)) < 0


def subtract(a: Any, b: Any) -> tuple[Any, Mask]:
    """The difference, and where it is wrong: where the signs differ and the result's is not that of ``a``."""
    result = np.subtract(a, b)
    if b.ndim == 0:
        return result, (result > a) if b >= 0 else (result < a)
    return result, ((a ^ b) & (a ^ result)) < 0


def multiply(a: Any, b: Any) -> tuple[Any, Mask | None]:
    """The product, and where it is wrong."""
    if a.dtype.itemsize < 8:
        wide = np.multiply(a, b, dtype=np.int64)
        result = wide.astype(a.dtype)
        return result, wide != result
    result = np.multiply(a, b)
    if _magnitude(a) * _magnitude(b) < 2**63:
        return result, None
    # A product that wrapped around is off by at least 2**64, so dividing it by one side cannot give the other. The
    # one exception is -1 times the smallest integer, where the division wraps around as well.
    divisor = np.where((a == 0) | (a == -1), 1, a)
    wrong = (result // divisor != b) & (divisor == a) & (a != 1)
    return result, wrong | ((a == -1) & (b == np.iinfo(np.int64).min))


def _magnitude(values: Any) -> int:
    return max(abs(int(np.max(values, initial=0))), abs(int(np.min(values, initial=0))))
