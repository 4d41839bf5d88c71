"""Claims of CAR §4.3 and §4.5: schedulers on a small network, a box at a time and with push-through."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from freshet.reproduce.aurora.measures import FIXED, PUSHED, ROBIN, SLOPE, least, mean, minus, most, over
from freshet.reproduce.aurora.runs import (
    GOOD,
    RATES,
    SIZES,
    AuroraResult,
    AuroraRun,
    ahead,
    branching,
    deep,
    departures_of,
    qos,
    runs,
    scheduling,
    seeded,
    small,
    unbranched,
)
from freshet.reproduce.registry import Measured, claim
from freshet.reproduce.trial import Trial
from freshet.simulation.workloads.aurora import AuroraWorkload


def curve_of(trial: Trial, policy: str, make: Callable[..., AuroraWorkload] = small, size: int = 10) -> list[float]:
    """Average QoS over all rates, for each seed."""
    every = [AuroraRun(make(trial, rate), policy, None if policy == ROBIN else size) for rate in RATES]
    ahead(trial, every)
    return mean(qos(runs(trial, run)) for run in every)


def by_rate(
    trial: Trial, policies: Sequence[str], make: Callable[..., AuroraWorkload] = small
) -> dict[str, list[float]]:
    """QoS at each rate, for the record."""
    return {
        f"{policy} at {rate:g}/s": qos(
            runs(trial, AuroraRun(make(trial, rate), policy, None if policy == ROBIN else 10))
        )
        for policy in policies
        for rate in RATES
    }


def poisson(trial: Trial, rate: float) -> AuroraWorkload:
    """The small network with Poisson arrivals."""
    return small(trial, rate, process="poisson")


@claim(
    "aurora.fig4.4.rr-lowest",
    source="CAR §4.3.2, Fig. 4.4",
    published="round robin is lowest",
    how="average QoS over rates from 800 to 1,800/s: the lower one of fixed-priority and slope-slack minus round robin",
    low=0.0001,
)
def _(trial: Trial) -> Measured:
    def gap(make: Callable[..., AuroraWorkload]) -> list[float]:
        aware = least(curve_of(trial, policy, make) for policy in (FIXED, SLOPE))
        return minus(aware, curve_of(trial, ROBIN, make))

    return Measured(gap(small), {"Poisson arrivals": gap(poisson), **by_rate(trial, (ROBIN, FIXED, SLOPE))})


@claim(
    "aurora.fig4.4.fixed-above-slope-slack",
    source="CAR §4.3.2, Fig. 4.4",
    published="fixed-priority is above slope-slack",
    how="average QoS over the rates: fixed-priority minus slope-slack, both a box at a time",
    low=0.0001,
)
def _(trial: Trial) -> Measured:
    values = {text: minus(curve_of(trial, FIXED, make), curve_of(trial, SLOPE, make)) for text, make in MAKES.items()}
    return Measured(values["even arrivals"], values)


MAKES = {"even arrivals": small, "Poisson arrivals": poisson}


KNEE_RATES: Final = tuple(float(rate) for rate in range(1000, 2001, 50))
"""Rates at which the knee of a curve is looked for."""


def knee(
    trial: Trial,
    policy: str,
    make: Callable[..., AuroraWorkload] = small,
    rates: Sequence[float] = KNEE_RATES,
    good: float = GOOD,
) -> list[float]:
    """The highest rate that keeps a good average QoS, for each seed; QoS falls with the rate, so it is bisected."""

    def is_bad(rate: float) -> bool:
        return min(qos(runs(trial, AuroraRun(make(trial, rate), policy, 10)))) < good

    place = bisect_left(rates, True, key=is_bad)
    return [rates[place - 1] if place else 0.0] * len(trial.seeds)


def lifts(trial: Trial) -> dict[str, list[float]]:
    """Tuples/s by which push-through moves the knee of each scheduler."""
    return {policy: minus(knee(trial, f"{policy}-push"), knee(trial, policy)) for policy in (FIXED, SLOPE)}


@claim(
    "aurora.fig4.14a.push-lifts-slope-slack",
    source="CAR §4.5, Fig. 4.14(a)",
    published="a significant improvement",
    how="tuples/s that slope-slack sustains (average QoS at least 0.95) with push-through over those without",
    low=1.05,
)
def _(trial: Trial) -> Measured:
    knees = {policy: knee(trial, policy) for policy in (FIXED, SLOPE, *PUSHED[:2])}
    readings = {f"{policy} sustains": values for policy, values in knees.items()}
    ratio = over(knees[PUSHED[1]], knees[SLOPE])
    return Measured(ratio, readings | by_rate(trial, PUSHED[:2]), grid=50.0 / knees[SLOPE][0])


@claim(
    "aurora.fig4.14a.push-lifts-fixed-less",
    source="CAR §4.5, Fig. 4.14(a)",
    published="not much of an improvement for fixed-priority",
    how="tuples/s that push-through adds to what is sustained: slope-slack's minus fixed-priority's",
    low=1.0001,
)
def _(trial: Trial) -> Measured:
    found = lifts(trial)
    return Measured(
        minus(found[SLOPE], found[FIXED]), {f"{name} gains": each for name, each in found.items()}, grid=50.0
    )


@claim(
    "aurora.fig4.14b.deep-queries-hurt-boxes",
    source="CAR §4.5, Fig. 4.14(b)",
    published="box at a time falls with depth, push-through does not",
    how="average QoS over the rates lost by queries four times as deep: the less of fixed-priority's and slope-slack's "
    "a box at a time, minus the more of theirs with push-through; a call costs the same in a cheaper box",
    low=0.0001,
)
def _(trial: Trial) -> Measured:
    loss = {
        policy: minus(curve_of(trial, policy), curve_of(trial, policy, deep)) for policy in (FIXED, SLOPE, *PUSHED[:2])
    }
    boxes = least((loss[FIXED], loss[SLOPE]))
    pushed = [max(pair) for pair in zip(loss[PUSHED[0]], loss[PUSHED[1]], strict=True)]
    return Measured(minus(boxes, pushed), {f"loss of {policy}": values for policy, values in loss.items()})


def ten_boxes(trial: Trial, policy: str) -> list[AuroraResult]:
    """CAR §4.3.1: ten applications of one box, 8,000 tuples/s that come together, ten for each application."""
    bed = small(trial, 8000.0, applications=10, depth=1, deadlines=(0.01, 0.02), burst=10)
    return runs(trial, AuroraRun(bed, policy, 10))


@claim(
    "aurora.fig4.2.both-meet-deadlines",
    source="CAR §4.3.1, Fig. 4.2-4.3",
    published=0.99,
    how="the lower one of the average QoS of fixed-priority and of slope-slack, ten one-box applications, 8,000/s in "
    "rounds of ten tuples each",
    low=0.98,
)
def _(trial: Trial) -> Measured:
    found = {policy: qos(ten_boxes(trial, policy)) for policy in (FIXED, SLOPE)}
    return Measured(least(found.values()), found)


def places_taken(trial: Trial, policy: str) -> list[float]:
    """In how many places of a round an application is served, the mean over applications, for each seed.

    A place counts if at least one round in fifty has it. Tuples come to all inputs at once, ten in the mean, each input
    a number of its own.
    """
    return [_places(seeded(AuroraRun(_batches(trial), policy, 10), seed)) for seed in trial.seeds]


def _batches(trial: Trial) -> AuroraWorkload:
    return small(
        trial, 8000.0, applications=10, depth=1, deadlines=(0.01, 0.02), burst=10, process="batches", tuples=20_000
    )


def _places(run: AuroraRun) -> float:
    departed = departures_of(run)
    firsts = []
    for arrivals, departures in departed.values():
        begins = np.flatnonzero(np.diff(arrivals, prepend=-1.0) > 0.0)
        firsts.append(np.minimum.reduceat(departures, begins))
    rounds = min(map(len, firsts))
    places = np.argsort(np.argsort(np.stack([each[:rounds] for each in firsts]), axis=0), axis=0)
    return float(np.mean([np.count_nonzero(np.bincount(each) >= rounds / 50) for each in places]))


@claim(
    "aurora.fig4.3.clusters",
    source="CAR §4.3.1, Fig. 4.2-4.3",
    published=5.0,
    how="number of places in a round at which slope-slack serves an application (five: any of those with the same "
    "curve may be first), minus that of fixed-priority (one) plus one; rounds of ten tuples in the mean",
    low=4.0,
    high=6.0,
)
def _(trial: Trial) -> Measured:
    found = {policy: places_taken(trial, policy) for policy in (FIXED, SLOPE)}
    return Measured([slope - fixed + 1.0 for slope, fixed in zip(found[SLOPE], found[FIXED], strict=True)], found)


def by_size(trial: Trial, policy: str, make: Callable[..., AuroraWorkload] = small) -> dict[int, list[AuroraResult]]:
    """Schedule sizes from 1 to 100 at 1,200 tuples/s."""
    ahead(trial, [AuroraRun(make(trial, 1200.0), policy, size) for size in SIZES])
    return {size: runs(trial, AuroraRun(make(trial, 1200.0), policy, size)) for size in SIZES}


@claim(
    "aurora.fig4.5.overhead-falls-with-size",
    source="CAR §4.4.1, Fig. 4.5",
    published="falls",
    how="seconds of scheduling at size 100 over those at size 1, the greater one of fixed-priority and slope-slack",
    high=0.9999,
)
def _(trial: Trial) -> Measured:
    ratios = []
    for policy in (FIXED, SLOPE):
        found = by_size(trial, policy)
        ratios.append(over(scheduling(found[100]), scheduling(found[1])))
    return Measured([max(pair) for pair in zip(*ratios, strict=True)])


@claim(
    "aurora.fig4.6.size-has-an-optimum",
    source="CAR §4.4.1, Fig. 4.6",
    published="best near 10, low at 1 and from 20 on",
    how="average QoS of size 10 minus the best one of sizes 1, 20, 50 and 100, the less of fixed-priority and "
    "slope-slack",
    low=0.1,
)
def _(trial: Trial) -> Measured:
    gaps: list[list[float]] = []
    readings: dict[str, list[float]] = {}
    for policy in (FIXED, SLOPE):
        by = {size: qos(found) for size, found in by_size(trial, policy).items()}
        others = [max(values) for values in zip(*(by[size] for size in (1, 20, 50, 100)), strict=True)]
        gaps.append(minus(by[10], others))
        readings |= {f"{policy}({size})": values for size, values in by.items()}
    return Measured(least(gaps), readings)


TOPOLOGY_RATES: Final = (1200.0, 1800.0, 2200.0)
BRANCHING_RATES: Final = tuple(float(rate) for rate in range(1800, 2801, 20))


@claim(
    "aurora.fig4.25.fan-out-equals-straight",
    source="CAR §4.7, Fig. 4.25-4.26",
    published=0.0,
    how="greatest difference of the average QoS between 10 trees with 8 inputs each and 80 straight queries, over "
    "rates and the three push-through schedulers; both make the same calls, so it says that the simulator is right",
    high=0.1,
    kind="check",
)
def _(trial: Trial) -> Measured:
    differences, readings = [], {}
    for policy in PUSHED:
        for rate in TOPOLOGY_RATES:
            straight, tree = (
                qos(runs(trial, AuroraRun(make(trial, rate), policy, 10))) for make in (unbranched, branching)
            )
            differences.append([abs(each) for each in minus(straight, tree)])
            readings[f"{policy}, {rate:g}/s, straight"] = straight
            readings[f"{policy}, {rate:g}/s, tree"] = tree
    return Measured([max(values) for values in zip(*differences, strict=True)], readings)


@claim(
    "aurora.fig4.25.bucketing-sustains-most",
    source="CAR §4.7, Fig. 4.25",
    published="a higher load than both others",
    how="tuples/s at which bucketing push-through has almost perfect QoS (0.99, as §4.5.1 says of the earlier study) "
    "over the more at which one of the other two has; 10 trees with 8 inputs each; readings: also with 0.95, where "
    "it ties with fixed-priority",
    low=1.0001,
)
def _(trial: Trial) -> Measured:
    return most(lambda policy, good: knee(trial, policy, branching, BRANCHING_RATES, good), 20.0)
