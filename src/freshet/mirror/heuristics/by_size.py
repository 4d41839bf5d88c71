"""SIZE-partitioning."""

from __future__ import annotations

from freshet.mirror.elements import Elements, Floats


def by_size(elements: Elements) -> Floats:
    """Sorts by size (CAR §2.5.3).

    >>> by_size(Elements.of([1.0, 1.0], sizes=[1.0, 2.0]))
    array([1., 2.])
    """
    return elements.sizes
