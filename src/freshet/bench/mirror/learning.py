"""The simulated part of ``freshet bench mirror``: how close learned rates come to known ones."""

from __future__ import annotations

from typing import Final

import numpy as np

from freshet.bench.figures import Spread, mean
from freshet.bench.stage import Stage
from freshet.mirror import Learner, RatePrior
from freshet.mirror.learning import NaiveLearner
from freshet.mirror.simulator import MirrorWorkload, RefreshingWorld
from freshet.mirror.simulator.drifts import Drift, exchanged, some_faster, unpolled_slower

POLLS: Final = 50
"""Polls per element, on average, before a drift and after it."""
EXPLORATION: Final = 0.02


def learning(stage: Stage, *, seeds: int, seed: int) -> dict[str, float | Spread]:
    """All figures of learning: means over the seeds, with their range."""
    cases = {
        "": (Learner, EXPLORATION),
        "naive_": (NaiveLearner, EXPLORATION),
        "no_exploration_": (Learner, 0.0),
    }
    drifts: dict[str, Drift] = {"drifted": exchanged, "faster": some_faster, "slower": unpolled_slower}
    figures: dict[str, float | Spread] = {}
    with stage.steps("learning", len(cases) * len(drifts) * seeds) as advance:
        for case, (kind, exploration) in cases.items():
            for name, drift in drifts.items():
                found = []
                for each in range(seed, seed + seeds):
                    found.append(way_back(kind, exploration, drift, each))
                    advance()
                before, hit, after = zip(*found, strict=True)
                figures[f"{case}learned_vs_known"] = mean(before)
                figures[f"{case}{name}_at_once_vs_known"] = mean(hit)
                figures[f"{case}{name}_vs_known"] = mean(after)
    return figures


def way_back(kind: type[Learner], exploration: float, drift: Drift, seed: int) -> tuple[float, float, float]:
    """Perceived freshness over that of known rates: learned, right after a drift, and 50 polls per element later."""
    bed = MirrorWorkload(theta=1.0, seed=seed)
    elements = bed.elements()
    count = len(elements)
    learner = kind(count, prior=RatePrior(mean=bed.syncs / count))
    world = RefreshingWorld(elements, bed.syncs, learner, exploration=exploration, seed=seed)
    before = world.run(POLLS * count).share
    world.drift(drift(elements, bed.syncs, np.random.default_rng(seed)))
    hit = world.point().share
    return before, hit, world.run(2 * POLLS * count).share
