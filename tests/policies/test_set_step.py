"""The prefix rule against all subsets, and the set step against the papers' policy."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.policies import (
    BusyPrice,
    FixedPrice,
    FreshnessAware,
    LoadPrice,
    OverheadPrice,
    Price,
    RateBased,
    SetStep,
    create,
)
from freshet.policies.ratio.set_step import best_prefix
from freshet.simulation.executor import Profile
from freshet.simulation.view import RecordView
from freshet.simulation.workloads.fas import FasWorkload
from freshet.simulation.world import SimulatedQuery, World

ITEMS = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=1, max_size=8)


@given(ITEMS, st.integers(0, 40))
def test_the_prefix_is_the_best_of_all_sets(items: list[tuple[int, int]], price: int) -> None:
    ranked = sorted(items, key=lambda item: item[0] / item[1], reverse=True)
    taken = ranked[: best_prefix(ranked, price)]
    subsets = (subset for size in range(1, len(items) + 1) for subset in combinations(ranked, size))
    best = max(ratio(subset, price) for subset in subsets)
    assert ratio(taken, price) == pytest.approx(best)


def ratio(items: list[tuple[int, int]] | tuple[tuple[int, int], ...], price: int) -> float:
    return sum(value for value, _ in items) / (price + sum(cost for _, cost in items))


def world(policy: FreshnessAware | RateBased, overhead: float, seed: int = 0) -> World:
    rng = np.random.default_rng(seed)
    queries = [
        SimulatedQuery.straight(f"q{index}", f"s{index % 3}", (Profile(float(rng.uniform(0.1, 1)), 0.5), Profile(0.1)))
        for index in range(9)
    ]
    streams = {f"s{index}": np.sort(rng.uniform(0, 100, 40)) for index in range(3)}
    simulated = World(streams, queries, policy, overhead=overhead, seed=seed)
    simulated.run()
    return simulated


@pytest.mark.parametrize("make", [FreshnessAware, RateBased])
def test_without_a_price_it_is_the_policy_of_the_paper(make: type[FreshnessAware] | type[RateBased]) -> None:
    plain, priced = world(make(), 0.0), world(make(steps=SetStep(FixedPrice(0.0))), 0.0)
    assert priced.engine.snapshot() == plain.engine.snapshot()


@pytest.mark.parametrize("price", [OverheadPrice(), LoadPrice(), BusyPrice()])
def test_with_an_overhead_queries_share_steps(price: Price) -> None:
    one_by_one = world(FreshnessAware(), 2.0).engine.snapshot()
    together = world(FreshnessAware(steps=SetStep(price)), 2.0).engine.snapshot()
    assert together["total"]["tuples_out"] == one_by_one["total"]["tuples_out"]
    assert together["workers"]["units"] < one_by_one["workers"]["units"]
    assert (together["total"]["freshness"] or 0.0) > (one_by_one["total"]["freshness"] or 0.0)


@pytest.mark.parametrize("make", [LoadPrice, BusyPrice])
@pytest.mark.parametrize("workers", [1, 2, 8])
def test_the_price_goes_by_the_share_of_all_workers(make: type[LoadPrice], workers: int) -> None:
    """Half of what the workers can do is half a load, however many they are."""
    overhead, steps = 0.01, 0.1
    view, price = RecordView(seconds_per_step=overhead, workers=workers), make(span=10.0)
    work = 0.5 * steps * workers - (overhead if make is BusyPrice else 0.0)
    for step in range(1, 1000):
        view.now = step * steps
        price.took(view, work)
    assert price.load(view) == pytest.approx(0.5, rel=0.02)
    assert price.seconds(view) == pytest.approx(2.0 * overhead, rel=0.02)


def test_at_half_load_two_workers_run_sets_and_not_everything() -> None:
    """A small overhead, half of the time of two workers: small steps are fresher, and there is time for them."""
    bed = FasWorkload(queries=20, tuples=150, utilization=0.5 * 2, seed=1)
    streams = bed.streams_of()
    stale, units = {}, {}
    for name in ("fas-mcq+set", "everything"):
        both = World(streams, bed.queries_of(streams), create(name), overhead=0.05 * bed.round_seconds(), slots=2)
        both.run()
        snapshot = both.engine.snapshot()
        stale[name], units[name] = 1.0 - (snapshot["total"]["freshness"] or 0.0), snapshot["workers"]["units"]
    assert both.engine.board.workers == 2
    assert units["fas-mcq+set"] > 1.2 * units["everything"]
    assert stale["fas-mcq+set"] < stale["everything"]


def test_the_load_is_the_work_per_second() -> None:
    view, price = RecordView(seconds_per_step=1.0), LoadPrice(span=10.0)
    for second in range(1, 200):
        view.now = float(second)
        price.took(view, 0.5)
    assert price.load(view) == pytest.approx(0.5, rel=0.06)
    assert price.seconds(view) == pytest.approx(2.0, rel=0.06)


def test_the_busy_share_counts_the_overhead() -> None:
    view, price = RecordView(seconds_per_step=0.25), BusyPrice(span=10.0)
    for second in range(1, 200):
        view.now = float(second)
        price.took(view, 0.5)
    assert price.load(view) == pytest.approx(0.75, rel=0.06)
