"""The claims of CAR on workloads of a test's size: the machinery, the calibration, and claims that hold at any size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from freshet.reproduce import Trial, claims
from freshet.reproduce.aurora.runs import (
    CHAPTER_3,
    PRICES,
    AuroraRun,
    Prices,
    fluctuating,
    large,
    policy_of,
    runs,
    seeded,
    simulate,
    small,
    sustained,
    trees,
)
from freshet.reproduce.aurora.threads import scheduler_waits, thread_waits
from freshet.simulation.workloads.aurora import AuroraWorkload
from freshet.simulation.world import World


def by_id(name: str) -> dict[str, object]:
    (found,) = [each for each in claims("aurora") if each.id == name]
    return found.check(Trial(quick=True, seeds=1))


@pytest.mark.parametrize(
    "name",
    [
        "aurora.fig3.7.min-cost-wins-cheap-boxes",
        "aurora.fig3.7.min-latency-wins-dear-boxes",
        "aurora.fig3.8.min-memory-needs-least",
        "aurora.fig3.8.min-latency-needs-most",
        "aurora.fig3.10.superboxes-halve",
        "aurora.fig4.3.clusters",
        "aurora.fig4.16.tight-miss-under-fixed",
        "aurora.table4.6.qos-per-tuple",
        "aurora.table4.5.calibration",
        "aurora.table4.5.bucketing-below-fixed",
        "aurora.fig4.2.both-meet-deadlines",
        "aurora.fig4.6.size-has-an-optimum",
    ],
)
def test_a_claim_holds(name: str) -> None:
    result = by_id(name)
    assert result["ok"] is True, result


def test_late_tuples_of_calms_are_told_for_each_application() -> None:
    bed = replace(fluctuating(Trial(quick=True)), calm=500, storm=500, tuples=1000)
    found = simulate(AuroraRun(bed, "fixed-priority-push", 10))
    assert len(found.late_in_calms) == bed.applications
    share = found.share_missed(storm=False)
    assert np.mean(found.late_in_calms) == pytest.approx(share, abs=0.02)
    assert min(found.late_in_calms) <= share


@pytest.mark.parametrize("prices", [PRICES, CHAPTER_3])
@pytest.mark.parametrize("policy", ["baat", "taat", "aaat-min-cost", "fixed-priority", "slope-slack-push", "bucketing"])
@pytest.mark.parametrize(
    "make", [lambda trial: small(trial, 1700.0, process="poisson"), lambda trial: trees(trial, 2, 0.9)]
)
def test_a_run_is_what_the_engine_gives(policy: str, make: Callable[[Trial], AuroraWorkload], prices: Prices) -> None:
    size = None if policy in ("baat", "taat", "aaat-min-cost") else 10
    run = AuroraRun(replace(make(Trial()), tuples=200), policy, size, prices=prices)
    fast = simulate(run).outcome
    world = World(
        run.bed.streams_of(), run.bed.queries_of(), policy_of(run), overhead=prices.unit, call=prices.call,
        operation=prices.operation, seed=run.bed.seed, departs="box",
    )  # fmt: skip
    world.run()
    slow = world.outcome()
    assert (fast.work.calls, fast.work.decisions) == (slow.work.calls, slow.work.decisions)
    assert fast.response == pytest.approx(slow.response, abs=1e-9)
    assert fast.qos.average == pytest.approx(slow.qos.average, abs=1e-9)
    assert fast.work.scheduling == pytest.approx(slow.work.scheduling, abs=1e-9)


def test_both_models_bring_every_tuple_through_every_box() -> None:
    # How long that takes is the machine's matter; that nothing is lost on the way is not.
    assert len(thread_waits(queries=3, tuples=7)) == len(scheduler_waits(queries=3, tuples=7)) == 21


def test_the_price_of_an_operation_is_calibrated() -> None:
    outcome = simulate(AuroraRun(large(Trial(), 4000.0), "fixed-priority-push", 300)).outcome
    assert outcome.work.scheduling / outcome.seconds == pytest.approx(0.075, abs=0.002)


def test_seeds_are_one_run_where_nothing_is_drawn() -> None:
    trial = Trial(quick=True, seeds=3)
    run = AuroraRun(replace(small(trial), tuples=200), "fixed-priority-push", 10)
    assert seeded(run, 1) == seeded(run, 2)
    assert len(runs(trial, run)) == 3
    assert trial.runs == 1
    assert seeded(replace(run, bed=replace(run.bed, process="poisson")), 1).bed.seed == 1


def test_all_seeds_have_the_same_load() -> None:
    run = AuroraRun(trees(Trial(), 2, 0.5), "baat")
    beds = [seeded(run, seed).bed for seed in range(3)]
    assert len({bed.rate for bed in beds}) == 3
    assert [bed.rate / bed.capacity for bed in beds] == pytest.approx([0.5] * 3)


def test_a_rate_is_sustained_up_to_the_first_that_is_not() -> None:
    trial = Trial(quick=True, seeds=1)
    every = [
        AuroraRun(replace(small(trial, rate), tuples=2000), "fixed-priority-push", 10)
        for rate in (800.0, 1200.0, 4000.0)
    ]
    assert sustained(trial, every) == [1200.0]


def test_late_tuples_are_counted_by_period_and_kind() -> None:
    bed = replace(fluctuating(Trial(quick=True)), calm=500, storm=500, tuples=1000)
    found = simulate(AuroraRun(bed, "slope-slack-push", 10, prices=PRICES))
    every = sum(each.missed + each.made for _, each in found.counts)
    assert every == 1000
    assert found.missed(storm=True) + found.missed(storm=False) == found.outcome.qos.late
    assert found.share_missed(storm=True, tight=True) >= found.share_missed(storm=True, tight=False)


def test_recent_utilities_fall_in_a_storm() -> None:
    bed = replace(fluctuating(Trial(quick=True)), calm=4000, storm=4000, tuples=8000)
    recent = simulate(AuroraRun(bed, "fixed-priority-push", 10)).recent
    assert len(recent) == 8
    assert recent[0][1] == 1.0
    assert min(utility for _, utility in recent[4:]) < 0.7


def test_batches_bring_random_numbers_of_tuples_at_the_same_moments() -> None:
    bed = replace(small(Trial()), applications=2, burst=10, tuples=2000, process="batches")
    first, second = bed.streams_of().values()
    shared = min(len(set(first.tolist())), len(set(second.tolist())))
    assert sorted(set(first.tolist()))[:shared] == sorted(set(second.tolist()))[:shared]
    counts = np.unique(first, return_counts=True)[1]
    assert counts.min() >= 1
    assert 8.0 < counts.mean() < 12.0
    assert counts.std() > 1.0
