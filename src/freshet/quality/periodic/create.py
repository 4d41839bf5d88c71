"""The manager of levels that settings ask for."""

from __future__ import annotations

from typing import Final

from freshet.model.promises.level_settings import LevelSettings
from freshet.quality.periodic.feedback import FeedbackLevels
from freshet.quality.periodic.level_rule import BestEffort
from freshet.quality.periodic.managed import InstanceSampler, ManagedLevels
from freshet.quality.periodic.predicted import PredictedLevels
from freshet.quality.periodic.sample_sizes import Sampling

COLD: Final = 3
"""Number of first instances of a query that compile and fill caches."""


def create_levels(settings: LevelSettings, sampler: InstanceSampler | None = None) -> ManagedLevels:
    """The manager of levels.

    Args:
        settings: What is asked for.
        sampler: Samples windows; None: selectivities are those of earlier instances.

    >>> [create_levels(LevelSettings(mode)).rule.name for mode in ("off", "feedback", "predicted")]
    ['best-effort', 'feedback', 'predicted']
    """
    if settings.mode == "off":
        return ManagedLevels(BestEffort())
    if settings.mode == "feedback":
        return ManagedLevels(FeedbackLevels())
    sampling: Sampling = "off" if sampler is None else "dynamic"
    return ManagedLevels(PredictedLevels(settings.aim), sampling, sampler, ahead=settings.ahead, cold=COLD)
