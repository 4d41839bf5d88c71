from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import Chain, Train, Work
from freshet.spark.failures import Retry
from freshet.spark.isolate import Works, isolate


def _works(sizes: list[int]) -> Works:
    numbers = iter(range(1000))
    return tuple(
        Work(Train(f"s{place}", 0, 9), tuple(Chain((next(numbers),)) for _ in range(size)))
        for place, size in enumerate(sizes)
    )


def _pairs(works: Works) -> list[tuple[str, int]]:
    return [(work.train.stream, chain.operators[0]) for work in works for chain in work.chains]


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4), bad=st.sets(st.integers(0, 30), max_size=4))
def test_exactly_the_culprits_fail_and_every_chain_runs_once(sizes: list[int], bad: set[int]):
    jobs = 0

    def run(works: Works) -> list[tuple[str, int]]:
        nonlocal jobs
        jobs += 1
        if any(number in bad for _, number in _pairs(works)):
            raise ValueError("bad chain")
        return _pairs(works)

    works = _works(sizes)
    outcomes = list(isolate(works, run, lambda: None))
    failed = [pair for done, result in outcomes if isinstance(result, str) for pair in _pairs(done)]
    passed = [pair for _, result in outcomes if not isinstance(result, str) for pair in result]
    assert sorted(failed + passed) == sorted(_pairs(works))
    assert {number for _, number in failed} == bad & {number for _, number in _pairs(works)}
    # A bisection looks at no more than two jobs per culprit and halving.
    assert jobs <= 1 + 2 * len(failed) * 6


def test_a_failure_that_is_no_chains_fault_blames_none():
    def run(works: Works) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(Retry, match="the disk is full"):
        list(isolate(_works([3]), run, lambda: None))


def test_where_nothing_runs_at_all_none_is_blamed():
    def run(works: Works) -> None:
        raise ValueError("no Python on this host")

    def suspect() -> None:
        raise Retry("Spark runs no job")

    with pytest.raises(Retry, match="Spark runs no job"):
        list(isolate(_works([3]), run, suspect))
