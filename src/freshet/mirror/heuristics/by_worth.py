"""p-partitioning."""

from __future__ import annotations

from freshet.mirror.elements import Elements, Floats


def by_worth(elements: Elements) -> Floats:
    """Sorts by worth p (CAR §2.3.1.0.1).

    >>> by_worth(Elements.of([1.0, 2.0], [0.3, 0.7]))
    array([0.3, 0.7])
    """
    return elements.worth
