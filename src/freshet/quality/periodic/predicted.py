"""Levels by prediction: every instance as good as its deadline, and those of the others, allow (RT §4.3)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Final

from freshet.model.level_settings import LevelAim
from freshet.quality.periodic.instance_meter import InstanceFigures
from freshet.quality.periodic.level_rule import LevelRule, PlannedLevel, ReadyInstance
from freshet.quality.periodic.levels import LevelDemand, average_levels, fair_levels, pseudo_deadlines

_RECENT: Final = 50
"""Number of instances from which the margin is learned."""
_SURE: Final = 2.0
"""Standard deviations that 97 of 100 cases do not exceed."""
_RANGE: Final = (-0.5, 1.0)
"""Margins are between these."""
_AIMS: Final = {"fair": fair_levels, "average": average_levels}


class PredictedLevels(LevelRule):
    """Levels from the predicted times of all instances, by every deadline in order.

    Instances run by their deadlines. One that has begun goes first, since a step is not interrupted.

    Args:
        aim: Whether the worst answer or the average is made as good as possible.

    Predicted times are stretched by a margin: what as many instances together would not exceed in 97 of 100 cases, by
    the errors of recent predictions.

    >>> from freshet.quality.periodic import OperatorCost, PlanStep, PlanTime
    >>> plan = lambda seconds: PlanTime((PlanStep("sum", ("s",), OperatorCost.given([seconds / 1000], 0.0)),))
    >>> one = ReadyInstance("one", 10.5, {"s": 1000}, plan(0.8))
    >>> two = ReadyInstance("two", 12.0, {"s": 1000}, plan(0.2))
    >>> found = PredictedLevels().assign(10.0, [one, two])
    >>> [(round(each.level, 3), round(each.seconds, 3), round(each.by, 3)) for each in found.values()]
    [(0.625, 0.5, 10.5), (1.0, 0.2, 10.7)]
    """

    name = "predicted"
    predicts = True

    def __init__(self, aim: LevelAim = "fair") -> None:
        self._levels = _AIMS[aim]
        self._recent: deque[tuple[float, float]] = deque(maxlen=_RECENT)
        self.margin = 0.0
        """Share by which instances are taken to last longer than predicted; below 0: less long."""

    def finished(self, outcome: InstanceFigures) -> None:
        if outcome.predicted and outcome.finished is not None:
            self._recent.append((outcome.predicted, outcome.took))

    def _margin(self, instances: int) -> float:
        """Share by which this many instances together may last longer than predicted, in 97 of 100 cases. They run
        one after the other, so errors of many instances even out, and those of long ones count most."""
        predicted = sum(each for each, _ in self._recent)
        if not predicted or not instances:
            return 0.0
        mean = sum(took for _, took in self._recent) / predicted
        variance = sum(each * (took / each - mean) ** 2 for each, took in self._recent) / predicted
        low, high = _RANGE
        return min(high, max(low, mean - 1.0 + _SURE * math.sqrt(variance / instances)))

    def assign(
        self, now: float, instances: Sequence[ReadyInstance], ahead: Sequence[ReadyInstance] = ()
    ) -> dict[str, PlannedLevel]:
        self.margin = self._margin(len(instances))
        first = min((each.due for each in instances), default=now)
        # A step is not interrupted: what has begun goes first, whatever its deadline is.
        dues = {each.key: (first if each.begun else each.due) - now for each in (*instances, *ahead)}
        order = sorted((*instances, *ahead), key=lambda each: (not each.begun, dues[each.key]))
        found = self._levels([self._demand(each, dues[each.key]) for each in order])
        times = [each.seconds(found[each.key]) if found[each.key] else 0.0 for each in order]
        stretched = [seconds * (1.0 + self.margin) for seconds in times]
        ends = pseudo_deadlines(stretched, [dues[each.key] for each in order])
        given = {
            each.key: PlannedLevel(found[each.key], each.kept(found[each.key]), seconds, now + end)
            for each, seconds, end in zip(order, times, ends, strict=True)
        }
        return {each.key: given[each.key] for each in instances}

    def _demand(self, instance: ReadyInstance, due: float) -> LevelDemand:
        seconds = instance.by_level(1.0 + self.margin)
        return LevelDemand(instance.key, due, seconds, 0.0 if instance.thin else 1.0, instance.weight)
