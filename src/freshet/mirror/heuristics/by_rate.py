"""lambda-partitioning."""

from __future__ import annotations

from freshet.mirror.elements import Elements, Floats


def by_rate(elements: Elements) -> Floats:
    """Sorts by change rate lambda (CAR §2.3.1.0.2).

    >>> by_rate(Elements.of([1.0, 2.0], [0.3, 0.7]))
    array([1., 2.])
    """
    return elements.rates
