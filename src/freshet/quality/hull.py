"""The lower convex hull of a loss: in which pieces something is given up."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise


def lower_hull(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Pieces of what can be given up: the loss per unit, and the units; the loss rises from each piece to the next.

    Where most is lost at the beginning, the pieces are taken as one: half of a drop would cost nearly as much as all
    of it.

    Args:
        points: (units given up, loss), by units.

    >>> lower_hull([(0.0, 0.0), (1.0, 3.0), (2.0, 4.0), (3.0, 8.0)])
    [(2.0, 2.0), (4.0, 1.0)]
    """
    hull: list[tuple[float, float]] = []
    for point in points:
        if hull and point[0] <= hull[-1][0]:
            continue
        while len(hull) > 1 and _slope(hull[-2], point) <= _slope(hull[-2], hull[-1]):
            hull.pop()
        hull.append(point)
    return [(_slope(one, two), two[0] - one[0]) for one, two in pairwise(hull)]


def _slope(one: tuple[float, float], two: tuple[float, float]) -> float:
    return (two[1] - one[1]) / (two[0] - one[0])
