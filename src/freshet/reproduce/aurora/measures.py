"""What the claims of CAR are made of: schedulers by name, and arithmetic seed by seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

FIXED: Final = "fixed-priority"
SLOPE: Final = "slope-slack"
BUCKETS: Final = "bucketing"
ROBIN: Final = "baat"
PUSHED: Final = (f"{FIXED}-push", f"{SLOPE}-push", f"{BUCKETS}-push")
LARGE_SIZE: Final = 300
"""Schedule size of CAR §4.5.1; its 50 buckets are 7 x 7 here."""


def minus(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Differences, seed by seed."""
    return [a - b for a, b in zip(one, other, strict=True)]


def over(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Ratios, seed by seed."""
    return [a / b for a, b in zip(one, other, strict=True)]


def mean(each: Iterable[Sequence[float]]) -> list[float]:
    """The mean over settings, for each seed."""
    return [float(np.mean(values)) for values in zip(*each, strict=True)]


def least(each: Iterable[Sequence[float]]) -> list[float]:
    """The smallest over settings, for each seed."""
    return [min(values) for values in zip(*each, strict=True)]
