"""Tuple-based strategies in simulated time: the worked examples, the last ditch, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.model import Promises, UserError
from freshet.policies import FirstComeFirstServed, RowLimit, Trains, WholeQueue
from freshet.policies.tuples.auto import TupleAuto
from freshet.policies.tuples.base import TuplePolicy
from freshet.policies.tuples.batching import IntelligentBatches, IntervalBatches
from freshet.policies.tuples.deadline_aware import POLICIES as DEADLINE_AWARE
from freshet.policies.tuples.deadline_aware import (
    BasicDeadlineDominant,
    LastDitchPolicy,
    OptProfitDeadlineDominant,
    OptProfitProfitDominant,
)
from freshet.policies.tuples.greedy import POLICIES as GREEDY
from freshet.policies.tuples.greedy import Basic, OptProfit, OptProfitPublished
from freshet.policies.tuples.last_ditch import RunningJob, WaitingJob, consequences, gives_up
from freshet.simulation.executor import Profile
from freshet.simulation.fast import FastWorld
from freshet.simulation.world import SimulatedQuery, World

ALL: list[type[TuplePolicy]] = [*GREEDY, *DEADLINE_AWARE, TupleAuto]
PARENTS = {1: None, 2: 1, 3: 2, 4: 2, 5: 1, 6: 5, 7: 6, 8: 6}
COSTS = {1: 1, 2: 1, 3: 4, 4: 1, 5: 4, 6: 3, 7: 5, 8: 1}
PROFITS = {3: 1, 4: 6, 7: 1, 8: 10}


def example() -> list[SimulatedQuery]:
    """A reading of Fig. 4.5 that fits every sentence of WU §4.6.2.4; profits are weights in tenths."""
    found = []
    for leaf, profit in PROFITS.items():
        reads: dict[str, tuple[str, ...]] = {}
        number: int | None = leaf
        while number is not None:
            above = PARENTS[number]
            reads[f"o{number}"] = ("s",) if above is None else (f"o{above}",)
            number = above
        operators = {name: Profile(float(COSTS[int(name[1:])])) for name in reads}
        found.append(SimulatedQuery(f"q{leaf}", operators, reads, Promises(weight=profit / 10)))
    return found


def in_time(world: FastWorld) -> Mapping[str, int]:
    return {name: int(np.count_nonzero(left <= due)) for name, (due, left) in world.due().items()}


@pytest.mark.parametrize(
    ("make", "profit"),
    [(Basic, 360), (OptProfit, 660), (OptProfitPublished, 660), (OptProfitProfitDominant, 660)],
)
def test_the_worked_example(make: type[TuplePolicy], profit: int) -> None:
    # WU §4.6.2.4: 60 tuples that expire after 420 units of time.
    world = FastWorld({"s": np.zeros(60)}, example(), make(trains=WholeQueue()), validity={"s": 420.0})
    world.run()
    earned = {name: PROFITS[int(name[1:])] * count for name, count in in_time(world).items()}
    assert sum(earned.values()) == profit
    assert all(len(due) == 60 for due, _ in world.due().values())


def test_the_consequences_are_known_before_a_job_is_pre_empted() -> None:
    running, waiting = RunningJob(4.0, 10.0, due=20.0, begun=0.0), WaitingJob(3.0, 5.0, due=11.0)
    assert consequences(running, waiting, now=5.0, overhead=1.0) == (4.0, 7.0, 3.0)
    assert not gives_up(running, waiting, now=5.0, overhead=1.0)
    # With more time both can be in time even if the first begins again.
    assert gives_up(RunningJob(4.0, 10.0, due=22.0, begun=0.0), waiting, now=5.0, overhead=1.0)


def last_ditch(policy: TuplePolicy) -> Mapping[str, int]:
    """Ten tuples of s (0.4 per second, due at 20), and at 5 five of t (0.6 per second, due at 11)."""
    streams = {"s": np.zeros(10), "t": np.full(5, 5.0)}
    queries = [
        SimulatedQuery("s", {"s.box": Profile(1.0)}, {"s.box": ("s",)}, Promises(weight=0.8)),
        SimulatedQuery("t", {"t.box": Profile(1.0)}, {"t.box": ("t",)}, Promises(weight=0.6)),
    ]
    world = FastWorld(streams, queries, policy, validity={"s": 20.0, "t": 6.0})
    world.run()
    return in_time(world)


def test_a_job_that_cannot_wait_pre_empts_one_that_can_go_on_later() -> None:
    assert last_ditch(OptProfitProfitDominant(0.65, trains=WholeQueue())) == {"s": 10, "t": 5}
    assert last_ditch(OptProfitDeadlineDominant(1.3, trains=WholeQueue())) == {"s": 10, "t": 5}


def test_a_job_that_is_worth_too_little_is_left_behind() -> None:
    # Per answer, s is worth 1 / 10 and t 0.1 / 5. When s ends, there is time for one of the tuples of t.
    streams = {"s": np.zeros(10), "t": np.full(5, 5.0)}
    queries = [
        SimulatedQuery("s", {"s.box": Profile(1.0)}, {"s.box": ("s",)}, Promises(weight=1.0)),
        SimulatedQuery("t", {"t.box": Profile(1.0)}, {"t.box": ("t",)}, Promises(weight=0.1)),
    ]
    for u, kept in ((0.1, 5), (0.65, 1)):
        world = FastWorld(
            streams, queries, OptProfitProfitDominant(u, trains=WholeQueue()), validity={"s": 20.0, "t": 6.0}
        )
        world.run()
        assert in_time(world) == {"s": 10, "t": kept}
        assert len(world.due()["t"][0]) == 5


def test_without_pre_emption_for_nothing_a_lost_start_is_not_made() -> None:
    # As on Spark: what a pre-empted unit did is lost. Then t must wait, because s would be late.
    held = OptProfitProfitDominant(0.65, trains=WholeQueue(), restart=1.0)
    held.is_better = lambda view, job, current: False  # type: ignore[method-assign]
    assert last_ditch(held)["s"] == 10


TREES = st.lists(st.integers(0, 4), min_size=1, max_size=6)
BATCHES = st.sampled_from([WholeQueue(), RowLimit(1), RowLimit(3), IntervalBatches(0.5), None])


@settings(max_examples=40, deadline=None)
@given(tree=TREES, seed=st.integers(0, 1000), make=st.sampled_from(ALL), batches=BATCHES)
def test_nothing_is_lost(tree: list[int], seed: int, make: type[TuplePolicy], batches: Trains | None) -> None:
    rng = np.random.default_rng(seed)
    streams = {name: np.sort(rng.uniform(0.0, 10.0, 30)) for name in "st"}
    above = [None if place == 0 or each >= place else each for place, each in enumerate(tree)]
    profiles = {
        f"o{place}": Profile(float(rng.uniform(0.01, 0.3)), float(rng.choice([0.5, 1.0]))) for place in range(len(tree))
    }
    queries = []
    for place in range(len(tree)):
        reads: dict[str, tuple[str, ...]] = {}
        at: int | None = place
        while at is not None:
            up = above[at]
            reads[f"o{at}"] = ("st"[at % 2],) if up is None else (f"o{up}",)
            at = up
        queries.append(
            SimulatedQuery(f"q{place}", {n: profiles[n] for n in reads}, reads, Promises(float(rng.uniform(0.1, 1))))
        )
    worlds = [
        FastWorld(streams, queries, policy, call=0.01, operation=1e-4, seed=seed, validity={"s": 2.0, "t": 3.0})
        for policy in (make(trains=batches), FirstComeFirstServed())
    ]
    for world in worlds:
        world.run()
    ours, first_come = worlds
    for name, (arrivals, departures) in ours.departed().items():
        np.testing.assert_array_equal(np.sort(arrivals), np.sort(first_come.departed()[name][0]))
        assert np.all(departures > arrivals)
    # Pre-empting neither loses nor repeats work, and no two units run at once.
    assert ours.work.processing == pytest.approx(first_come.work.processing)
    assert ours.now >= ours.work.processing + ours.work.beyond - 1e-9


@pytest.mark.parametrize("make", ALL)
def test_without_a_validity_everything_is_answered(make: type[TuplePolicy]) -> None:
    world = FastWorld({"s": np.arange(5.0)}, example()[:2], make())
    world.run()
    assert all(len(due) == 5 for due, _ in world.due().values())


def test_a_tight_deadline_goes_first_with_dd() -> None:
    streams = {"s": np.zeros(3), "t": np.zeros(3)}
    queries = [SimulatedQuery.straight(name, name, [Profile(1.0)]) for name in "st"]
    world = FastWorld(streams, queries, BasicDeadlineDominant(trains=WholeQueue()), validity={"s": 9.0, "t": 3.0})
    world.run()
    assert in_time(world) == {"s": 3, "t": 3}


def test_a_factor_must_be_positive() -> None:
    with pytest.raises(UserError, match="use more than 0"):
        OptProfitProfitDominant(0.0)
    assert issubclass(OptProfitProfitDominant, LastDitchPolicy)


def test_batches_must_not_be_empty() -> None:
    with pytest.raises(UserError, match="use numbers above 0"):
        IntelligentBatches(alpha=0.0)
    with pytest.raises(UserError, match="use more than 0"):
        IntervalBatches(0.0)


def test_the_engine_refuses_what_it_does_not_do() -> None:
    with pytest.raises(UserError, match=r"policy basic ends units early .*: use another policy here"):
        World({"s": np.zeros(1)}, example()[:1], Basic())
