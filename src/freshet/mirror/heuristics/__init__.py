"""The heuristics of CAR §2.3-2.5, as baselines: a file each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from freshet.mirror.elements import Elements, Floats
from freshet.mirror.heuristics.by_freshness import by_freshness
from freshet.mirror.heuristics.by_freshness_size import by_freshness_size
from freshet.mirror.heuristics.by_rate import by_rate
from freshet.mirror.heuristics.by_ratio import by_ratio
from freshet.mirror.heuristics.by_size import by_size
from freshet.mirror.heuristics.by_worth import by_worth
from freshet.mirror.heuristics.fba import fixed_bandwidth
from freshet.mirror.heuristics.ffa import fixed_frequency
from freshet.mirror.heuristics.kmeans import k_means
from freshet.mirror.heuristics.partition import Allocate, Partition, in_order, plan_by_partition, representatives
from freshet.model import UserError

KEYS: Final[dict[str, Callable[[Elements], Floats]]] = {
    "p": by_worth,
    "lambda": by_rate,
    "p/lambda": by_ratio,
    "PF": by_freshness,
    "PFS": by_freshness_size,
    "size": by_size,
}
"""What elements are sorted by before they are cut into partitions, by the name of the heuristic."""


def heuristic(
    elements: Elements,
    budget: float,
    *,
    key: str = "PF",
    groups: int = 50,
    iterations: int = 0,
    allocate: Allocate = fixed_frequency,
    sized: bool = False,
) -> Floats:
    """Frequencies by a heuristic: sort, cut into partitions, clean up by k-means, plan for representatives.

    Args:
        elements: Change rates, worth and sizes.
        budget: What polls may cost per second.
        key: What to sort by, a name of :data:`KEYS`.
        groups: Number of partitions.
        iterations: Iterations of k-means.
        allocate: How a partition shares its bandwidth: FFA or FBA.
        sized: Whether k-means looks at sizes.

    >>> heuristic(Elements.of([1, 2, 3, 4, 5]), 5.0, groups=5).round(2)
    array([1.15, 1.36, 1.35, 1.14, 0.  ])
    >>> heuristic(Elements.of([1, 2]), 5.0, key="nope")
    Traceback (most recent call last):
    freshet.model.errors.UserError: there is no heuristic nope, only p, lambda, p/lambda, PF, PFS, size
    """
    if key not in KEYS:
        raise UserError(f"there is no heuristic {key}, only {', '.join(KEYS)}")
    partition = k_means(elements, in_order(KEYS[key](elements), groups), iterations, sized=sized)
    return plan_by_partition(elements, budget, partition, allocate)


__all__ = [
    "KEYS",
    "Allocate",
    "Partition",
    "by_freshness",
    "by_freshness_size",
    "by_rate",
    "by_ratio",
    "by_size",
    "by_worth",
    "fixed_bandwidth",
    "fixed_frequency",
    "heuristic",
    "in_order",
    "k_means",
    "plan_by_partition",
    "representatives",
]
