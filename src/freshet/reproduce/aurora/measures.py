"""What the claims of CAR are made of: schedulers by name, and arithmetic seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from freshet.reproduce.aurora.runs import ALMOST_PERFECT, GOOD
from freshet.reproduce.registry import Measured

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


def most(reached: Callable[[str, float], Sequence[float]], step: float) -> Measured:
    """The rate that bucketing push-through sustains with almost perfect QoS over the more that one of the others does.

    Args:
        reached: The rate that a policy sustains with an average QoS, for each seed.
        step: The step of the rates.
    """
    rates = {(policy, good): reached(policy, good) for policy in PUSHED for good in (ALMOST_PERFECT, GOOD)}
    others = [max(pair) for pair in zip(*(rates[policy, ALMOST_PERFECT] for policy in PUSHED[:2]), strict=True)]
    readings = {f"{policy} sustains with {good:g}": each for (policy, good), each in rates.items()}
    return Measured(over(rates[PUSHED[2], ALMOST_PERFECT], others), readings, grid=step / others[0])
