"""k-means: cleaning up partitions."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements, Floats
from freshet.mirror.heuristics.partition import Partition

_CHUNK: Final = 1 << 13


def k_means(elements: Elements, partition: Partition, iterations: int, *, sized: bool = False) -> Partition:
    """Moves each element to the partition with the nearest mean, several times (CAR §2.4.1.3, Eq. 2.3).

    Worth, rates and (if ``sized``, footnote 6) sizes are scaled so that each sums to 1, and distances are Euclidean.
    A partition that loses all its elements stays empty.

    >>> elements = Elements.of([1.0, 1.1, 9.0, 9.1], [1.0, 1.0, 1.0, 1.0])
    >>> k_means(elements, np.array([0, 1, 1, 1]), iterations=3)
    array([0, 0, 1, 1])
    """
    columns = [elements.worth, elements.rates] + ([elements.sizes] if sized else [])
    points = np.column_stack([each / max(float(each.sum()), 1e-300) for each in columns])
    groups = int(partition.max(initial=0)) + 1
    for _ in range(iterations):
        counts = np.bincount(partition, minlength=groups)
        sums = [np.bincount(partition, weights=column, minlength=groups) for column in points.T]
        with np.errstate(invalid="ignore"):
            means = np.column_stack(sums) / counts[:, None]
        partition = _nearest(points, np.where(counts[:, None] > 0, means, np.inf))
    return partition


def _nearest(points: Floats, means: Floats) -> NDArray[np.intp]:
    """The mean that is nearest to each point; |m|^2 - 2 x m orders the distances as they are."""
    some = np.flatnonzero(np.isfinite(means).all(axis=1))
    few = means[some]
    squares = (few * few).sum(axis=1)
    nearest = np.empty(len(points), dtype=np.intp)
    for begin in range(0, len(points), _CHUNK):
        part = points[begin : begin + _CHUNK]
        nearest[begin : begin + _CHUNK] = some[np.argmin(squares - 2.0 * (part @ few.T), axis=1)]
    return nearest
