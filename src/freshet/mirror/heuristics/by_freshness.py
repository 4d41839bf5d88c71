"""PF-partitioning."""

from __future__ import annotations

import numpy as np

from freshet.mirror.elements import Elements, Floats
from freshet.mirror.measures import freshness_of


def by_freshness(elements: Elements) -> Floats:
    """Sorts by the perceived freshness p F at one poll per unit of time (CAR §2.3.1.0.4, footnote 3).

    >>> by_freshness(Elements.of([1.0, 1.0], [0.5, 1.0])).round(3)
    array([0.316, 0.632])
    """
    return elements.worth * freshness_of(elements, np.ones(len(elements)))
