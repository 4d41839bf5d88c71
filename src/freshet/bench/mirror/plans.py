"""The pure part of ``freshet bench mirror``: how fast plans are made, and how good they are."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np

from freshet.bench.figures import Spread, extremes, over
from freshet.bench.stage import Stage
from freshet.mirror import Elements, RefreshPlan, perceived_freshness, plan
from freshet.mirror.again import start_after
from freshet.mirror.heuristics import heuristic
from freshet.mirror.kkt import kkt_residual
from freshet.mirror.simulator import MirrorWorkload

T = TypeVar("T")

ROUNDS: Final = 5
PARTITIONS: Final = 50
ITERATIONS: Final = 10
CHANGED: Final = 0.01
"""Share of the elements whose rates change before a plan is made again."""


def plans(stage: Stage, *, objects: int, seed: int) -> dict[str, float | Spread]:
    """All figures of plans."""
    with stage.steps("planning", 3) as advance:
        large = _large(objects, seed)
        advance()
        huge = _timed(lambda: _planned(_workload(10 * objects, seed)))[1]
        advance()
        compared = _compared(objects // 2, seed)
        advance()
    return {**large, "plan_s_1e7": huge, **compared}


def _workload(objects: int, seed: int) -> tuple[Elements, float]:
    """CAR Table 2.3, scaled: two changes and half a poll per element and period."""
    bed = MirrorWorkload(objects, 2.0 * objects, 0.5 * objects, theta=1.0, deviation=2.0, seed=seed)
    return bed.elements(), bed.syncs


def _planned(bed: tuple[Elements, float]) -> Callable[[], RefreshPlan]:
    elements, budget = bed
    return lambda: plan(elements, budget)


def _timed(make: Callable[[], Callable[[], T]]) -> tuple[T, float]:
    """What a function returns and how long it takes; making its input does not count."""
    function = make()
    began = time.perf_counter()
    result = function()
    return result, time.perf_counter() - began


def _large(objects: int, seed: int) -> dict[str, float | Spread]:
    times, residuals = [], []
    for round_ in range(ROUNDS):
        elements, budget = _workload(objects, seed + round_)
        made, took = _timed(lambda bed=(elements, budget): _planned(bed))  # type: ignore[misc]
        times.append(took)
        residuals.append(kkt_residual(elements, made, budget))
    return {"plan_s_1e6": extremes(times), "kkt_residual": max(residuals)}


def _compared(objects: int, seed: int) -> dict[str, float | Spread]:
    """With the best heuristic, and with a plan that begins where an earlier one ended."""
    gains, cold, warm, theirs = [], [], [], []
    for round_ in range(ROUNDS):
        elements, budget = _workload(objects, seed + round_)
        made, took = _timed(lambda bed=(elements, budget): _planned(bed))  # type: ignore[misc]
        cold.append(took)
        began = time.perf_counter()
        clustered = heuristic(elements, budget, groups=PARTITIONS, iterations=ITERATIONS)
        theirs.append(time.perf_counter() - began)
        gains.append(made.perceived / perceived_freshness(elements, clustered))
        warm.append(_again(made, budget, seed + round_))
    return {
        "plan_gain_vs_kmeans": extremes(gains),
        "plan_time_vs_kmeans": over(cold, theirs),
        "replan_vs_plan": over(warm, cold),
    }


def _again(before: RefreshPlan, budget: float, seed: int) -> float:
    """Seconds for a plan after one in a hundred elements took over the rate of another, made as a mirror makes it."""
    elements, rng = before.elements, np.random.default_rng(seed)
    rows = rng.choice(len(elements), int(CHANGED * len(elements)), replace=False)
    rates = elements.rates.copy()
    rates[rows] = rng.choice(elements.rates, len(rows))
    changed = Elements(rates, elements.worth, elements.sizes)
    began = time.perf_counter()
    plan(changed, budget, start=start_after(before, changed))
    return time.perf_counter() - began
