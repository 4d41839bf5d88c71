"""Plans by partitions: what the heuristics of CAR §2.3 share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements
from freshet.mirror.orders import OrderName
from freshet.mirror.plan import plan
from freshet.model import UserError

Floats = NDArray[np.float64]
Partition = NDArray[np.intp]
"""The number of the partition of each element."""
Allocate = Callable[[Elements, Partition, Elements, Floats], Floats]
"""Frequencies of all elements, from partitions, their representatives and the frequencies of these."""


def in_order(keys: Floats, groups: int) -> Partition:
    """Sorts the elements by a key and cuts the sequence into equal parts (CAR §2.3.1).

    >>> in_order(np.array([5.0, 1.0, 4.0, 2.0]), 2)
    array([1, 0, 1, 0])
    """
    if groups < 1:
        raise UserError(f"elements are cut into at least one partition, not {groups}")
    partition = np.empty(len(keys), dtype=np.intp)
    partition[np.argsort(keys, kind="stable")] = np.arange(len(keys)) * groups // max(len(keys), 1)
    return partition


def representatives(elements: Elements, partition: Partition) -> tuple[Elements, Floats]:
    """The mean rate, worth and size of each partition, and its number of elements (CAR §2.3.2).

    >>> few, counts = representatives(Elements.of([1.0, 3.0, 9.0]), np.array([0, 0, 1]))
    >>> few.rates, counts
    (array([2., 9.]), array([2., 1.]))
    """
    counts = np.bincount(partition).astype(np.float64)
    held = np.maximum(counts, 1.0)
    columns = (elements.rates, elements.worth, elements.sizes)
    rates, worth, sizes = (np.bincount(partition, weights=each) / held for each in columns)
    return Elements(rates, worth, sizes), counts


def plan_by_partition(
    elements: Elements, budget: float, partition: Partition, allocate: Allocate, *, order: OrderName = "fixed"
) -> Floats:
    """Frequencies of all elements: one optimal plan for the representatives, each as often as its partition is large.

    The transformed problem (CAR §2.3.2) multiplies worth and cost of a representative by its count, which is a plan
    for elements with that worth and that size.
    """
    few, counts = representatives(elements, partition)
    some = np.flatnonzero(counts)
    weighed = Elements(few.rates[some], few.worth[some] * counts[some], few.sizes[some] * counts[some])
    frequencies = np.zeros(len(counts))
    frequencies[some] = plan(weighed, budget, order=order).frequencies
    return allocate(elements, partition, few, frequencies)
