"""Fragments of job trees: the worked example, the optimum, and what was published."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.policies.ratio.set_step import best_prefix
from freshet.policies.tuples.fragments import Cut, allotted, fragments, published_fragments
from freshet.policies.tuples.job_tree import JobTree, job_tree
from freshet.simulation.view import RecordView

EXAMPLE = JobTree.of([None, 0, 1, 1, 0, 4, 5, 5], [0, 0, 1, 6, 0, 0, 1, 10], [1, 1, 4, 1, 4, 3, 5, 1])
"""A reading of the lost Fig. 4.5 that fits every sentence of WU §4.6.2.4. Its jobs 1 to 8 are at the places 0 to 7."""


@pytest.mark.parametrize("cut", [fragments, published_fragments])
def test_the_worked_example(cut: Cut) -> None:
    ranked = cut(EXAMPLE)
    assert [sorted(each.jobs) for each in ranked] == [[0, 1, 3], [4, 5, 7], [2], [6]]
    assert [each.density for each in ranked] == [2.0, 1.25, 0.25, 0.2]
    given_time = allotted(ranked, rows=60, seconds=420.0)
    assert [each.rows for each in given_time] == [60, 30.0]
    assert sum(each.profit for each in given_time) == 660.0


def test_how_many_fragments_run_together_at_a_price_of_a_step() -> None:
    items = [(each.profit, each.cost) for each in fragments(EXAMPLE)]
    for price, count in ((0.0, 1), (1.8, 1), (1.81, 2), (53.0, 2), (53.1, 3), (70.0, 3), (70.1, 4)):
        assert best_prefix(items, price) == count, price


def test_what_was_published_is_not_optimal() -> None:
    tree = JobTree.of([None, 0, 1, 1, 0, 1], [0, 0, 8, 7, 9, 8], [3, 5, 6, 7, 9, 7])
    assert published_fragments(tree)[0].density == 3 / 4
    assert fragments(tree)[0].density == pytest.approx(32 / 37)


def best_profit(tree: JobTree, seconds: float) -> float:
    """By brute force: of all sets of jobs that are closed towards the root, the best mixture of two that fits."""
    count, closed = len(tree.jobs), []
    for mask in range(1 << count):
        chosen = [place for place in range(count) if mask >> place & 1]
        parents = (tree.jobs[place].parent for place in chosen)
        if all(parent is None or mask >> parent & 1 for parent in parents):
            closed.append(
                (sum(tree.jobs[each].cost for each in chosen), sum(tree.jobs[each].profit for each in chosen))
            )
    best = max(profit for cost, profit in closed if cost <= seconds)
    for small, less in ((cost, profit) for cost, profit in closed if cost <= seconds):
        for large, more in ((cost, profit) for cost, profit in closed if cost > seconds):
            best = max(best, less + (more - less) * (seconds - small) / (large - small))
    return best


def drawn_tree(rng: random.Random) -> JobTree:
    count = rng.randint(1, 6)
    parents = [None, *(rng.randrange(place) for place in range(1, count))]
    return JobTree.of(
        parents, [rng.choice([0, 0, *range(1, 10)]) for _ in parents], [rng.randint(1, 9) for _ in parents]
    )


def test_no_order_earns_more_whatever_time_there_is() -> None:
    rng, worse = random.Random(19), 0
    for _ in range(2000):
        tree = drawn_tree(rng)
        seconds = rng.uniform(0.0, sum(job.cost for job in tree.jobs))
        best = best_profit(tree, seconds)
        ours, published = (
            sum(each.profit for each in allotted(cut(tree), 1, seconds)) for cut in (fragments, published_fragments)
        )
        assert ours == pytest.approx(best, abs=1e-9)
        assert published <= best + 1e-9
        worse += published < best - 1e-9
    assert worse


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_fragments_are_ranked_and_each_job_is_in_one_after_its_parent(seed: int) -> None:
    tree = drawn_tree(random.Random(seed))
    ranked = fragments(tree)
    order = [place for each in ranked for place in each.jobs]
    assert sorted(order) == list(range(len(tree.jobs)))
    for place, job in enumerate(tree.jobs):
        assert job.parent is None or order.index(job.parent) < order.index(place)
    assert all(one.density >= other.density - 1e-9 for one, other in pairwise(ranked))


def test_a_job_tree_follows_shared_operators_and_multiplies_what_passes() -> None:
    # 0 feeds 1 and 2; both feed 3, on two ways.
    view = RecordView.over(
        {0: (1, 2), 1: (3,), 2: (3,), 3: ()}, {0: (1.0, 0.5), 1: (2.0, 0.5), 2: (3.0, 1.0), 3: (4.0, 0.25)}
    )
    tree = job_tree(view, 0, {0: 8.0})
    assert [(job.node, job.parent) for job in tree.jobs] == [(0, None), (1, 0), (3, 1), (2, 0), (3, 3)]
    assert [job.cost for job in tree.jobs] == [1.0, 1.0, 1.0, 1.5, 2.0]
    assert [job.profit for job in tree.jobs] == [0.0, 0.0, 0.5, 0.0, 1.0]


def test_a_job_is_due_when_all_below_it_can_still_run_one_after_the_other() -> None:
    # The longest way below job 5 of the example takes 3 + 5, all below it 3 + 5 + 1.
    assert EXAMPLE.below[4] == 9.0
    assert EXAMPLE.due(4, expiry=100.0) == 91.0
    assert EXAMPLE.due(4, expiry=1000.0, rows=60) == 460.0
    assert EXAMPLE.due(7, expiry=100.0) == 100.0
