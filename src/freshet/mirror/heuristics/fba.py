"""Fixed bandwidth allocation: all elements of a partition cost the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements

Floats = NDArray[np.float64]


def fixed_bandwidth(elements: Elements, partition: NDArray[np.intp], few: Elements, frequencies: Floats) -> Floats:
    """FBA (CAR §2.5.3): each element has the bandwidth of its representative, so small ones are polled more often.

    >>> elements, few = Elements.of([1, 1], sizes=[1, 3]), Elements.of([1], sizes=[2])
    >>> fixed_bandwidth(elements, np.array([0, 0]), few, np.array([0.5]))
    array([1.        , 0.33333333])
    """
    return (few.sizes * frequencies)[partition] / elements.sizes
