"""p/lambda-partitioning."""

from __future__ import annotations

import numpy as np

from freshet.mirror.elements import Elements, Floats


def by_ratio(elements: Elements) -> Floats:
    """Sorts by p / lambda (CAR §2.3.1.0.3); what never changes comes last.

    >>> by_ratio(Elements.of([1.0, 2.0, 0.0], [0.3, 0.8, 0.1]))
    array([0.3, 0.4, inf])
    """
    ratios = np.full(len(elements), np.inf)
    np.divide(elements.worth, elements.rates, out=ratios, where=elements.rates > 0.0)
    return ratios
