"""Claims of CAR §6.3: superboxes of queries that overlap, and of boxes that cost much.

The thesis asks for a study of the degree of overlap (§6.3.5) and publishes no figures, so that is a plot. What it says
of examples and of its heuristics are claims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from freshet.arrivals import Poisson
from freshet.model import Curve
from freshet.policies import Policy, RowLimit, TwoLevel, create
from freshet.policies.aurora.spanner import TopSpanner
from freshet.reproduce.aurora.runs import CHAPTER_3, PRICES, Prices
from freshet.reproduce.registry import Measured, claim
from freshet.reproduce.trial import Trial
from freshet.simulation.executor import Profile
from freshet.simulation.fast import FastWorld
from freshet.simulation.world import SimulatedQuery

DEPTH: Final = 5
QUERIES: Final = 10
OVERLAPS: Final = tuple(range(DEPTH))
"""Number of boxes, of five, that all queries have in common."""
LOAD: Final = 0.3
"""Share of the ideal capacity without overlap: a box at a time must not saturate."""
COST: Final = 5e-4
SELECTIONS: Final[Mapping[str, Callable[[], Policy]]] = {
    "query trees, composed": lambda: TwoLevel("applications"),
    "intersections": lambda: TwoLevel("intersections"),
    "intersections by curves": lambda: create("superbox-slope-slack"),
    "top-k spanner": lambda: create("top-k-spanner"),
    "a box at a time": lambda: create("baat"),
    "whole spanner": lambda: TopSpanner(QUERIES * DEPTH),
    "slope-slack by trees": lambda: create("slope-slack-push(1)"),
    "slope-slack by boxes": lambda: create("slope-slack(1)"),
}
"""Policies by name; the first :data:`PLOTTED` are lines of the plot."""
PLOTTED: Final = 5


@dataclass(frozen=True, slots=True)
class OverlapRun:
    """Ten queries of five boxes over one stream, some of which are common to all.

    Args:
        selection: A key of :data:`SELECTIONS`.
        shared: Number of common boxes.
        tuples: Of the stream.
    """

    selection: str
    shared: int
    tuples: int
    seed: int = 0
    load: float = LOAD
    prices: Prices = CHAPTER_3


@dataclass(frozen=True, slots=True)
class OverlapResult:
    """Means per output tuple: seconds of overhead (calls, units, scheduling), of scheduling alone, and box calls; and
    mean latency and average QoS."""

    overhead: float
    scheduling: float
    calls: float
    latency: float
    qos: float


def overlapped(run: OverlapRun) -> OverlapResult:
    """Runs one simulation.

    >>> apart, shared = (overlapped(OverlapRun("query trees, composed", count, 50)).overhead for count in (0, 4))
    >>> shared < apart
    True
    """
    limits = (0.1, 2.0)
    queries = [
        SimulatedQuery.straight(
            f"q{number}", "s", [Profile(COST)] * DEPTH, curve=Curve.deadline(limits[number % 2]), shared=run.shared
        )
        for number in range(QUERIES)
    ]
    rate = run.load / (QUERIES * DEPTH * COST)
    streams = {"s": Poisson(rate, seed=run.seed).first(run.tuples)}
    call, operation, unit = run.prices
    world = FastWorld(
        streams, queries, SELECTIONS[run.selection](), overhead=unit, call=call, operation=operation, seed=run.seed,
        departs="box",
    )  # fmt: skip
    world.run()
    work, outcome, count = world.work, world.outcome(), QUERIES * run.tuples
    return OverlapResult(
        work.beyond / count, work.scheduling / count, work.calls / count, outcome.response, outcome.qos.average
    )


def by_overlap(trial: Trial, selection: str, degrees: Sequence[int] = OVERLAPS) -> list[list[OverlapResult]]:
    """The results for each degree of overlap and each seed."""
    return [over_seeds(trial, OverlapRun(selection, shared, _tuples(trial))) for shared in degrees]


def over_seeds(trial: Trial, run: OverlapRun) -> list[OverlapResult]:
    """A run for each seed."""
    return trial.map(overlapped, [replace(run, seed=seed) for seed in trial.seeds])


def _tuples(trial: Trial) -> int:
    return 300 if trial.quick else 10_000


# Claims


def mean_departure(policy: Policy) -> float:
    """The example of CAR §6.3.1, Fig. 6.5: when the answers of 20 windows leave, in the mean. A window is complete with
    its fifth tuple, all are there at 100, and box 4 takes 5 for each; boxes 6 and 8 take 0.5 each."""
    query = SimulatedQuery.straight("q", "s", [Profile(5.0), Profile(0.5), Profile(0.5)])
    world = FastWorld({"s": np.full(20, 100.0)}, [query], policy, departs="box")
    world.run()
    return float(world.departed()["q"][1].mean())


@claim(
    "aurora.sec6.3.1.superbox-hogs",
    source="CAR §6.3.1, Fig. 6.5",
    published=215.25,
    how="mean time at which answers leave if one superbox holds an expensive box and two cheap ones behind it (the "
    "thesis prints 210; its own times have a mean of 215.25)",
    low=215.0,
    high=215.5,
)
def _(trial: Trial) -> Measured:
    return Measured([mean_departure(TwoLevel())])


@claim(
    "aurora.sec6.3.1.expensive-boxes-yield",
    source="CAR §6.3.1, §6.3.7, Fig. 6.5",
    published=163.0,
    how="mean time at which answers leave if the expensive box ends its superbox, takes a window at a time and yields",
    low=162.5,
    high=163.5,
)
def _(trial: Trial) -> Measured:
    whole = mean_departure(TwoLevel(high_cost=1.0))
    yields = mean_departure(TwoLevel(high_cost=1.0, trains=RowLimit(1)))
    return Measured([yields], {"it takes all windows at once": [whole]})


@claim(
    "aurora.sec6.3.6.shared-calls",
    source="CAR §6.3.6.1.1",
    published="application trees that overlap incur significantly more box calls",
    how="box calls per output tuple of intersections over those of trees that each run the common boxes by themselves, "
    "4 common boxes of 5 (the thesis speaks of significant overlap)",
    high=0.95,
)
def _(trial: Trial) -> Measured:
    (apart,) = by_overlap(trial, "query trees, composed", (0,))
    by_degree = {
        f"{count} common": [one.calls / other.calls for one, other in zip(found, apart, strict=True)]
        for count, found in zip(OVERLAPS[1:], by_overlap(trial, "intersections", OVERLAPS[1:]), strict=True)
    }
    return Measured(by_degree[f"{OVERLAPS[-1]} common"], by_degree)


@claim(
    "aurora.sec6.3.6.spanner-is-the-tree",
    source="CAR §6.3.6.1.2",
    published=0.0,
    how="difference in box calls per output tuple between a spanner of as many boxes as there are and the query tree, "
    "without common boxes",
    high=0.0,
    kind="check",
)
def _(trial: Trial) -> Measured:
    whole, trees = (by_overlap(trial, name, (0,))[0] for name in ("whole spanner", "slope-slack by trees"))
    return Measured([abs(one.calls - other.calls) for one, other in zip(whole, trees, strict=True)])


def overloaded(trial: Trial, selection: str) -> list[OverlapResult]:
    """One common box of five, at 1.1 times the capacity without overlap and the prices of chapter 4."""
    return over_seeds(trial, OverlapRun(selection, 1, _tuples(trial), load=1.1, prices=PRICES))


@claim(
    "aurora.sec6.3.8.low-overhead",
    source="CAR §6.3.8",
    published="a very low-overhead approach",
    how="seconds of scheduling with curves of whole superboxes over those of slope-slack by boxes, under overload",
    high=0.5,
)
def _(trial: Trial) -> Measured:
    ours, boxes = overloaded(trial, "intersections by curves"), overloaded(trial, "slope-slack by boxes")
    return Measured([one.scheduling / other.scheduling for one, other in zip(ours, boxes, strict=True)])


@claim(
    "aurora.sec6.3.8.right-priority",
    source="CAR §6.3.8",
    published="approximates the correct priority assignment",
    how="average QoS with curves of whole superboxes minus that of slope-slack by boxes, under overload",
    low=-0.01,
)
def _(trial: Trial) -> Measured:
    readings = {name: [each.qos for each in overloaded(trial, name)] for name in SELECTIONS if name != "whole spanner"}
    pairs = zip(readings["intersections by curves"], readings["slope-slack by boxes"], strict=True)
    return Measured([one - other for one, other in pairs], readings)
