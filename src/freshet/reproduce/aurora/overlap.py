"""The degree of overlap between queries, and what each selection of superboxes makes of it (CAR §6.3.5).

The thesis asks for this study and publishes no figures, so it is a plot and not a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from freshet.arrivals import Poisson
from freshet.model import Curve
from freshet.policies import Policy, TwoLevel, create
from freshet.reproduce.aurora.runs import CHAPTER_3
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
}
"""Policies by the label of their line."""


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


def overhead_per_tuple(run: OverlapRun) -> tuple[float, float]:
    """Seconds of overhead (calls, units, scheduling) and mean latency per output tuple.

    >>> apart, shared = (overhead_per_tuple(OverlapRun("query trees, composed", count, 50))[0] for count in (0, 4))
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
    rate = LOAD / (QUERIES * DEPTH * COST)
    streams = {"s": Poisson(rate, seed=run.seed).first(run.tuples)}
    call, operation, unit = CHAPTER_3
    world = FastWorld(
        streams, queries, SELECTIONS[run.selection](), overhead=unit, call=call, operation=operation, seed=run.seed,
        departs="box",
    )  # fmt: skip
    world.run()
    return world.work.beyond / (QUERIES * run.tuples), world.outcome().response


def by_overlap(trial: Trial, selection: str) -> list[list[tuple[float, float]]]:
    """Overhead and latency for each degree of overlap and each seed."""
    tuples = 300 if trial.quick else 10_000
    return [
        trial.map(overhead_per_tuple, [OverlapRun(selection, shared, tuples, seed) for seed in trial.seeds])
        for shared in OVERLAPS
    ]
