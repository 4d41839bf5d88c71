"""Fixed frequency allocation: all elements of a partition are polled equally often."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements

Floats = NDArray[np.float64]


def fixed_frequency(elements: Elements, partition: NDArray[np.intp], few: Elements, frequencies: Floats) -> Floats:
    """FFA (CAR §2.5.3): each element has the frequency of its representative.

    >>> elements, few = Elements.of([1, 1], sizes=[1, 3]), Elements.of([1], sizes=[2])
    >>> fixed_frequency(elements, np.array([0, 0]), few, np.array([0.5]))
    array([0.5, 0.5])
    """
    return frequencies[partition]
