"""The manager of levels that settings ask for."""

from __future__ import annotations

from freshet.model.level_settings import LevelSettings
from freshet.quality.periodic.feedback import FeedbackLevels
from freshet.quality.periodic.managed import InstanceSampler, ManagedLevels
from freshet.quality.periodic.predicted import PredictedLevels
from freshet.quality.periodic.sample_sizes import Sampling


def create_levels(settings: LevelSettings, sampler: InstanceSampler | None = None) -> ManagedLevels | None:
    """The manager of levels; None: instances read everything.

    Args:
        settings: What is asked for.
        sampler: Samples windows; None: selectivities are those of earlier instances.

    >>> create_levels(LevelSettings("off")) is None, create_levels(LevelSettings("feedback")).rule.name
    (True, 'feedback')
    """
    if settings.mode == "off":
        return None
    if settings.mode == "feedback":
        return ManagedLevels(FeedbackLevels())
    sampling: Sampling = "off" if sampler is None else "dynamic"
    return ManagedLevels(PredictedLevels(settings.aim), sampling, sampler, ahead=settings.ahead)
