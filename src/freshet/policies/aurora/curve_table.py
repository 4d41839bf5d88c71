"""Many latency curves as arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from freshet.model import Curve

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


class CurveTable:
    """Slope and slack of many latencies on many curves at once.

    Args:
        curves: The curves, in the order of their numbers.

    >>> table = CurveTable([Curve([(0, 1), (1, 0)]), Curve.deadline(2.0)])
    >>> slopes, slacks = table.look_up(np.array([0, 1, 1]), np.array([0.25, 0.25, 3.0]))
    >>> slopes.tolist(), slacks.tolist()
    ([1.0, 0.0, 0.0], [0.75, 1.75, inf])
    """

    def __init__(self, curves: Sequence[Curve]) -> None:
        width = max((len(curve.pieces()) for curve in curves), default=0)
        self._ends = np.full((len(curves), width + 1), math.inf)
        self._slopes = np.zeros((len(curves), width + 1))
        for number, curve in enumerate(curves):
            for place, (end, slope) in enumerate(curve.pieces()):
                self._ends[number, place], self._slopes[number, place] = end, slope

    def look_up(self, numbers: Numbers, latencies: Floats) -> tuple[Floats, Floats]:
        """Slope and slack of each latency on the curve of that number."""
        ends = self._ends[numbers]
        place = (ends < latencies[:, None]).sum(axis=1)
        rows = np.arange(len(numbers))
        return self._slopes[numbers, place], ends[rows, place] - latencies
