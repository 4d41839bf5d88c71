"""The feedback controller that RT compares with: it drops by the misses of the past (RT §5.2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from freshet.quality.periodic.instance_meter import InstanceFigures
from freshet.quality.periodic.level_rule import LEAST, LevelRule, PlannedLevel, ReadyInstance, uniform


class Gains(NamedTuple):
    """Of a controller: what a miss ratio counts, and what its change counts."""

    integral: float = 0.5
    proportional: float = 0.5


class FeedbackController:
    """Keeps a share of all inputs that it lowers while deadlines are missed and raises while none are.

    u(k) = u(k - 1) + K_I e(k) + K_P (e(k) - e(k - 1)), where u is the share that is dropped and e the miss ratio of the
    last interval minus the wanted one (a PI controller in its incremental form, as in feedback control of real-time
    scheduling, to which RT §5.2.3 refers).

    Args:
        gains: Of the controller.
        target: Miss ratio that is wanted: at 0 it would never raise what is kept.

    >>> controller = FeedbackController(Gains(0.5, 0.0), target=0.02)
    >>> [round(controller.observe(missed, 10), 3) for missed in (5, 5, 0)]
    [0.76, 0.52, 0.53]
    """

    def __init__(self, gains: Gains | None = None, target: float = 0.02) -> None:
        self._gains, self._target = gains or Gains(), target
        self._before = 0.0
        self.kept = 1.0
        """Share of every input that is kept."""

    def observe(self, missed: int, instances: int) -> float:
        """Takes in an interval: how many of its instances were late; returns the share to keep."""
        if instances:
            error = missed / instances - self._target
            change = self._gains.integral * error + self._gains.proportional * (error - self._before)
            self.kept = min(1.0, max(LEAST, self.kept - change))
            self._before = error
        return self.kept


class FeedbackLevels(LevelRule):
    """Reads the same share of all inputs, by the deadlines that were missed in the last interval (RT §5.2.3).

    Args:
        controller: Says the share.
        every: Seconds of an interval (RT Table 2: 1 s).

    >>> feedback = FeedbackLevels(FeedbackController(Gains(0.5, 0.0)))
    >>> feedback.finished(InstanceFigures("q", 0.0, 1.0, 1.5, 0.0))
    >>> from freshet.quality.periodic.plan_time import PlanTime
    >>> feedback.assign(1.6, [ReadyInstance("q", 2.0, {"s": 10}, PlanTime(()))])["q"].kept
    {'s': 0.51}
    """

    name = "feedback"

    def __init__(self, controller: FeedbackController | None = None, every: float = 1.0) -> None:
        self._controller, self._every = controller or FeedbackController(), every
        self._next = every
        self._missed = 0
        self._instances = 0

    def assign(
        self, now: float, instances: Sequence[ReadyInstance], ahead: Sequence[ReadyInstance] = (), workers: int = 1
    ) -> dict[str, PlannedLevel]:
        if now >= self._next:
            self._controller.observe(self._missed, self._instances)
            self._missed = self._instances = 0
            self._next = now + self._every
        return {each.key: uniform(each, self._controller.kept) for each in instances}

    def finished(self, outcome: InstanceFigures) -> None:
        self._instances += 1
        self._missed += outcome.missed
