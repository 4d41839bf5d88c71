"""Confidence intervals of means over a few runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Final

_T: Final = (
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812,
    1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725,
    1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701, 1.699, 1.697,
)  # fmt: skip
"""Student's t at 0.95 for 1 to 30 degrees of freedom."""
_NORMAL: Final = 1.645


def interval_90(values: Sequence[float]) -> list[float] | None:
    """The 90 % confidence interval of the mean, by Student's t; None: one run says nothing about others.

    >>> [round(each, 2) for each in interval_90([0.79, 0.8, 0.81])]
    [0.78, 0.82]
    """
    count = len(values)
    if count < 2:
        return None
    t = _T[count - 2] if count - 1 <= len(_T) else _NORMAL
    half = t * stdev(values) / math.sqrt(count)
    return [fmean(values) - half, fmean(values) + half]
