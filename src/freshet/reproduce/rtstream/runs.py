"""The simulations behind Fig. 10 of RT: Table 2's workload under each way of managing quality."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from freshet.policies import FirstComeFirstServed
from freshet.policies.periodic.earliest_deadline import EarliestDeadline
from freshet.quality.periodic import (
    BestEffort,
    FeedbackController,
    FeedbackLevels,
    Gains,
    InstanceFigures,
    LevelAim,
    LevelRule,
    ManagedLevels,
    PlannedLevel,
    PredictedLevels,
    ReadyInstance,
)
from freshet.reproduce.trial import Trial
from freshet.simulation.sampler import SimulatedSampler
from freshet.simulation.workloads.rtstream import RtWorkload
from freshet.simulation.world import World

Manager = Literal["best-effort", "feedback", "fixed", "dynamic"]
"""The four algorithms of RT §5.2.3."""
MANAGERS: Final[tuple[Manager, ...]] = ("dynamic", "fixed", "feedback", "best-effort")
"""In the order of RT Fig. 10a, the best first."""
WARM: Final = 5.0
"""Seconds until windows are full and costs are known: what is released before does not count."""
GRID: Final = tuple(Gains(integral, change) for integral in (0.1, 0.3, 1.0) for change in (0.0, 0.3, 1.0))
"""Gains among which the best of the feedback controller are searched."""
SEARCHED: Final = (1.2, 1.5)
"""Loads at which they are."""


@dataclass(frozen=True, slots=True)
class RtRun:
    """One simulation.

    Args:
        bed: The queries and their streams.
        manager: How quality is managed.
        gains: Of the feedback controller.
        ties: Which of the instances with the same deadline runs first.
        aim: Of predicted levels.
    """

    bed: RtWorkload
    manager: Manager
    gains: Gains = GRID[0]
    ties: Literal["hash", "shortest"] = "hash"
    aim: LevelAim = "fair"


@dataclass(frozen=True, slots=True)
class RtResult:
    """What came of the instances that were due within a simulation.

    Args:
        quality: Mean quality; instances that missed their deadline have 0 (RT Eq. 3).
        deviation: Standard deviation of the quality over all instances (RT Fig. 10b).
        missed: Share of the instances that were not answered in time.
        sampling: Seconds of samplers per second.
    """

    quality: float
    deviation: float
    missed: float
    sampling: float


class RecordedRule(LevelRule):
    """A rule whose instances are written down."""

    name = "recorded"

    def __init__(self, inner: LevelRule) -> None:
        self.inner = inner
        self.predicts = inner.predicts  # type: ignore[misc]
        self.figures: list[InstanceFigures] = []

    def assign(
        self, now: float, instances: Sequence[ReadyInstance], ahead: Sequence[ReadyInstance] = (), workers: int = 1
    ) -> dict[str, PlannedLevel]:
        return self.inner.assign(now, instances, ahead, workers)

    def finished(self, outcome: InstanceFigures) -> None:
        self.figures.append(outcome)
        self.inner.finished(outcome)


def simulate(run: RtRun) -> RtResult:
    """Runs the queries until their streams end."""
    bed, rule = run.bed, RecordedRule(_rule(run))
    world = World(
        bed.streams_of(),
        bed.queries_of(),
        FirstComeFirstServed(),
        known=False,
        departs="unit",
        seed=bed.seed,
        periodic=EarliestDeadline(run.ties),
        levels=_manager(run, rule),
    )
    world.run(until=bed.seconds)
    unanswered = [each.deadline for each in world.engine.board.instances if each.release >= WARM]
    return _result(rule.figures, unanswered, bed.seconds)


def _rule(run: RtRun) -> LevelRule:
    if run.manager == "best-effort":
        return BestEffort()
    return FeedbackLevels(FeedbackController(run.gains)) if run.manager == "feedback" else PredictedLevels(run.aim)


def _manager(run: RtRun, rule: LevelRule) -> Callable[[SimulatedSampler], ManagedLevels]:
    if run.manager in ("best-effort", "feedback"):
        return lambda sampler: ManagedLevels(rule)
    return lambda sampler: ManagedLevels(rule, "dynamic" if run.manager == "dynamic" else "fixed", sampler)


def _result(figures: Sequence[InstanceFigures], unanswered: Sequence[float], end: float) -> RtResult:
    due = [each for each in figures if each.release >= WARM and each.due <= end]
    late = sum(deadline <= end for deadline in unanswered)
    quality = np.array([each.quality for each in due] + [0.0] * late)
    missed = sum(each.missed for each in due) + late
    sampling = sum(each.sampling for each in due) / (end - WARM)
    return RtResult(float(quality.mean()), float(quality.std()), missed / len(quality), sampling)


def bed(trial: Trial, load: float, seed: int = 0) -> RtWorkload:
    """Table 2 at a load that lasts: 20 s, or as long as the paper's runs."""
    return RtWorkload(load, 20.0 if trial.quick else 300.0, "each second", seed=seed)


def gains(trial: Trial) -> Gains:
    """The gains with which feedback reaches the highest quality over the loads, on arrivals of their own."""
    beds = [replace(bed(trial, load, seed=100), seconds=12.0 if trial.quick else 60.0) for load in SEARCHED]
    runs = [RtRun(each, "feedback", one) for one in GRID for each in beds]
    found = trial.map(simulate, runs)
    quality = [sum(each.quality for each in found[at : at + 2]) for at in range(0, len(found), 2)]
    return GRID[int(np.argmax(quality))]


def runs(
    trial: Trial,
    manager: Manager,
    load: float,
    change: Callable[[RtRun], RtRun] = lambda run: run,
    seeds: int | None = None,
) -> list[RtResult]:
    """One simulation for each seed, or for the first ones.

    Args:
        trial: The trial.
        manager: How quality is managed.
        load: Of the workload.
        change: Makes another reading of a run.
        seeds: Number of seeds; None: all.
    """
    chosen = gains(trial) if manager == "feedback" else GRID[0]
    specs = [change(RtRun(bed(trial, load, seed), manager, chosen)) for seed in trial.seeds[:seeds]]
    return trial.map(simulate, specs)
