"""The heuristics of CAR §2.3-2.5 spend the budget, and never beat the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from freshet.mirror import perceived_freshness, plan
from freshet.mirror.heuristics import KEYS, fixed_bandwidth, fixed_frequency, heuristic, in_order, k_means
from freshet.mirror.simulator import MirrorWorkload
from freshet.model import UserError

EQUAL = MirrorWorkload(theta=1.0, seed=2)
SIZED = MirrorWorkload(theta=1.0, sizes="shuffled", seed=2)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("bed", [EQUAL, SIZED], ids=["equal", "sized"])
@pytest.mark.parametrize("allocate", [fixed_frequency, fixed_bandwidth])
def test_the_budget_is_spent_and_the_optimum_not_reached(key: str, bed: MirrorWorkload, allocate: object) -> None:
    elements = bed.elements()
    frequencies = heuristic(elements, bed.syncs, key=key, groups=20, allocate=allocate)  # type: ignore[arg-type]
    assert float(elements.sizes @ frequencies) == pytest.approx(bed.syncs)
    assert perceived_freshness(elements, frequencies) < plan(elements, bed.syncs).perceived


def test_a_partition_for_each_element_is_the_optimum() -> None:
    elements = EQUAL.elements()
    frequencies = heuristic(elements, EQUAL.syncs, groups=len(elements))
    assert perceived_freshness(elements, frequencies) == pytest.approx(plan(elements, EQUAL.syncs).perceived)


def test_partitions_are_equally_large() -> None:
    assert np.bincount(in_order(np.random.default_rng(1).random(103), 10)).tolist() == [
        11,
        10,
        10,
        11,
        10,
        10,
        11,
        10,
        10,
        10,
    ]


def test_k_means_shortens_distances_and_helps() -> None:
    elements = EQUAL.elements()
    plain = heuristic(elements, EQUAL.syncs, groups=20)
    cleaned = heuristic(elements, EQUAL.syncs, groups=20, iterations=10)
    assert perceived_freshness(elements, cleaned) > perceived_freshness(elements, plain)


def test_k_means_agrees_with_scipy() -> None:
    from scipy.cluster.vq import kmeans2

    elements = EQUAL.elements()
    points = np.column_stack([elements.worth, elements.rates / elements.rates.sum()])
    first = in_order(KEYS["PF"](elements), 10)
    means = np.array([points[first == group].mean(axis=0) for group in range(10)])
    _, theirs = kmeans2(points, means, iter=7, minit="matrix")
    assert k_means(elements, first, 7).tolist() == theirs.tolist()


def test_what_no_heuristic_can_do_is_refused() -> None:
    elements = EQUAL.elements()
    with pytest.raises(UserError, match="there is no heuristic nope, only p, lambda"):
        heuristic(elements, EQUAL.syncs, key="nope")
    with pytest.raises(UserError, match="at least one partition, not 0"):
        heuristic(elements, EQUAL.syncs, groups=0)
