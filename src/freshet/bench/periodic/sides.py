"""The sides of ``freshet bench periodic``: ways of managing quality, all in the same code (RT §5.2.3)."""

from __future__ import annotations

from typing import Final, Literal

from freshet.policies.periodic.earliest_deadline import EarliestDeadline
from freshet.quality.periodic import (
    BestEffort,
    FeedbackController,
    FeedbackLevels,
    Gains,
    InstanceSampler,
    ManagedLevels,
    PredictedLevels,
    Sampling,
)
from freshet.quality.periodic.create import COLD
from freshet.reproduce.rtstream.runs import RecordedRule

QualitySide = Literal["dynamic", "fair", "fixed", "feedback", "best-effort", "shortest-first"]
SIDES: Final[tuple[QualitySide, ...]] = ("dynamic", "fair", "fixed", "feedback", "best-effort", "shortest-first")
"""What is measured is the mean quality and its deviation, so ``dynamic`` and ``fixed`` take balanced levels; ``fair``
is ``dynamic`` with the highest common level. ``shortest-first`` is best effort that breaks ties by the expected time.
"""
GRID: Final = tuple(Gains(integral, change) for integral in (0.1, 0.3, 1.0) for change in (0.0, 0.5))
"""Gains among which those of feedback are searched."""
_SAMPLING: Final[dict[QualitySide, Sampling]] = {"dynamic": "dynamic", "fair": "dynamic", "fixed": "fixed"}


def rule_of(side: QualitySide, gains: Gains) -> RecordedRule:
    """What gives levels, with notes of all instances.

    >>> rule_of("feedback", Gains()).inner.name, rule_of("fixed", Gains()).inner.name
    ('feedback', 'predicted')
    """
    if side in _SAMPLING:
        return RecordedRule(PredictedLevels("fair" if side == "fair" else "balanced"))
    return RecordedRule(FeedbackLevels(FeedbackController(gains)) if side == "feedback" else BestEffort())


def manager_of(side: QualitySide, rule: RecordedRule, sampler: InstanceSampler) -> ManagedLevels:
    """The manager of levels."""
    sampling = _SAMPLING.get(side, "off")
    return ManagedLevels(rule, sampling, None if sampling == "off" else sampler, cold=COLD)


def scheduler_of(side: QualitySide) -> EarliestDeadline:
    """Which instance runs first."""
    return EarliestDeadline("shortest" if side == "shortest-first" else "hash")
