from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import Chain, Input, Train
from freshet.model.scheduling.unit import components
from freshet.spark.driver.failures import Apart, Retry
from freshet.spark.driver.isolate import isolate

TRAIN = Train("s", 0, 9)


@given(count=st.integers(1, 30), bad=st.sets(st.integers(0, 30), max_size=4))
def test_exactly_the_culprits_fail_and_every_part_runs_once(count: int, bad: set[int]):
    runs = 0

    def run(parts: Sequence[int]) -> list[int]:
        nonlocal runs
        runs += 1
        if not bad.isdisjoint(parts):
            raise ValueError("bad part")
        return list(parts)

    outcomes = list(isolate(range(count), run, lambda: None))
    failed = [part for done, result in outcomes if isinstance(result, str) for part in done]
    passed = [part for _, result in outcomes if not isinstance(result, str) for part in result]
    assert sorted(failed + passed) == list(range(count))
    assert set(failed) == bad & set(range(count))
    # A bisection looks at no more than two runs per culprit and halving.
    assert runs <= 1 + 2 * len(failed) * 6


def test_a_failure_that_is_no_parts_fault_blames_none():
    def run(parts: Sequence[int]) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(Retry, match="the disk is full"):
        list(isolate(range(3), run, lambda: None))


def test_where_nothing_runs_at_all_none_is_blamed():
    def run(parts: Sequence[int]) -> None:
        raise ValueError("no Python on this host")

    def suspect() -> None:
        raise Retry("Spark runs no job")

    with pytest.raises(Retry, match="Spark runs no job"):
        list(isolate(range(3), run, suspect))


def test_what_must_run_apart_is_told_and_not_bisected():
    def run(parts: Sequence[int]) -> None:
        raise Apart("nobody can tell", (0, 1))

    with pytest.raises(Apart, match="nobody can tell"):
        list(isolate(range(3), run, lambda: None))


@given(reads=st.lists(st.sets(st.integers(0, 11), max_size=2), max_size=12))
def test_components_are_what_hangs_together(reads: list[set[int]]):
    chains = []
    for place, sources in enumerate(reads):
        inputs: tuple[Input, ...] = tuple(source for source in sorted(sources) if source < place)
        chains.append(Chain((place,), inputs or (TRAIN,)))
    found = components(chains)
    assert sorted(place for each in found for place in each) == list(range(len(chains)))
    home = {place: number for number, each in enumerate(found) for place in each}
    edges = [(place, each) for place, chain in enumerate(chains) for each in chain.inputs if isinstance(each, int)]
    assert all(home[one] == home[two] for one, two in edges)
    # A component of n chains needs n - 1 edges that join what was apart.
    apart = {place: {place} for place in range(len(chains))}
    for one, two in edges:
        both = apart[one] | apart[two]
        apart |= dict.fromkeys(both, both)
    assert {frozenset(each) for each in found} == {frozenset(each) for each in apart.values()}
