"""Poisson order: the times of an element's polls are a Poisson process."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class PoissonOrder:
    """F = 1 / (1 + r): the element to poll is drawn anew each time (CGM00b §4, "purely random").

    >>> PoissonOrder().freshness(np.array([1.0]))
    array([0.5])
    """

    name: ClassVar[str] = "poisson"

    def freshness(self, r: Floats) -> Floats:
        return 1.0 / (1.0 + r)

    def gain(self, r: Floats) -> Floats:
        return (r / (1.0 + r)) ** 2

    def lack(self, r: Floats) -> Floats:
        return (1.0 + 2.0 * r) / (1.0 + r) ** 2

    def slope(self, r: Floats) -> Floats:
        return 2.0 * r / (1.0 + r) ** 3

    def inverse(self, gain: Floats, lack: Floats) -> Floats:
        root = np.sqrt(gain)
        return root * (1.0 + root) / lack

    def age(self, r: Floats) -> Floats:
        return r / (1.0 + r)
