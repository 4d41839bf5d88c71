"""PFS-partitioning."""

from __future__ import annotations

from freshet.mirror.elements import Elements, Floats
from freshet.mirror.measures import freshness_of


def by_freshness_size(elements: Elements) -> Floats:
    """Sorts by the perceived freshness p F at one unit of bandwidth: large elements are polled less often (CAR §2.5.2).

    >>> by_freshness_size(Elements.of([1.0, 1.0], sizes=[1.0, 2.0])).round(3)
    array([0.632, 0.432])
    """
    return elements.worth * freshness_of(elements, 1.0 / elements.sizes)
