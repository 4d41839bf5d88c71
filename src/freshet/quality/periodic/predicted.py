"""Levels by prediction: every instance as good as its deadline, and those of the others, allow (RT §4.3)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from freshet.model.promises.level_settings import LevelAim
from freshet.quality.periodic.instance_meter import InstanceFigures
from freshet.quality.periodic.level_rule import LevelRule, PlannedLevel, ReadyInstance
from freshet.quality.periodic.levels import (
    BALANCED,
    LevelDemand,
    average_levels,
    balanced_levels,
    fair_levels,
    pseudo_deadlines,
)
from freshet.quality.periodic.refinement import largest_ratio

_RECENT: Final = 50
"""Number of instances from which the margin is learned."""
_SURE: Final = 3.0
"""Standard deviations that are kept free: hardly any instance exceeds them."""
_FORGET: Final = 0.1
"""Share by which each instance makes earlier ones count less for their deviation."""
_LITTLE, _MUCH = 0.5, 2.0
"""Levels stay as they are while between so much and so much of the usual time is left free."""
_AT_MOST: Final = 2.0
"""An instance that takes longer counts as if it had taken so many times what was predicted."""
_RANGE: Final = (-0.5, 1.0)
"""Margins are between these."""
_FREE: Final = 0.5
"""Share of the time until a deadline that is kept free, at most."""
_AIMS: Final = {"fair": fair_levels, "average": average_levels, "balanced": balanced_levels}
_POWERS: Final[Mapping[LevelAim, float]] = {"average": 1.0, "balanced": BALANCED}


class PredictedLevels(LevelRule):
    """Levels from the predicted times of all instances, by every deadline in order.

    Instances run by their deadlines. One that has begun goes first, since a step is not interrupted.

    Args:
        aim: Whether the worst answer or the average is made as good as possible, or what lies between.

    Predicted times are stretched by a margin: by how much longer recent instances took than predicted, all together.
    Before each deadline some time is kept free: three standard deviations of what instances take beyond that. It is the
    error of one instance, not of all that wait: levels are set anew at every completion, so the error of one is made up
    for by those that follow, and only the last has nobody behind it. Levels that still fit, and would not rise, stay as
    they are: small errors shall not make answers of the same release uneven.

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
        self._aim, self._levels = aim, _AIMS[aim]
        self._recent: deque[tuple[float, float]] = deque(maxlen=_RECENT)
        self.margin = 0.0
        """Share by which instances are taken to last longer than predicted; below 0: less long."""
        self._before: Mapping[str, float] = {}
        """The levels that were given last."""
        self.free = 0.0
        """Seconds that are kept free before a deadline."""

    def finished(self, outcome: InstanceFigures) -> None:
        if outcome.predicted and outcome.finished is not None:
            # One that was disturbed says little of others.
            self._recent.append((outcome.predicted, min(outcome.took, _AT_MOST * outcome.predicted)))
            self._learn()

    def _learn(self) -> None:
        low, high = _RANGE
        predicted, took = (math.fsum(each) for each in zip(*self._recent, strict=True))
        self.margin = min(high, max(low, took / predicted - 1.0))
        # The newest count most, since the first predictions are the worst; and long ones, whose errors are large.
        squares = weights = 0.0
        for each, one in self._recent:
            squares += each * (one - each * (1.0 + self.margin)) ** 2 - _FORGET * squares
            weights += each - _FORGET * weights
        self.free = _SURE * math.sqrt(squares / weights)

    def assign(
        self, now: float, instances: Sequence[ReadyInstance], ahead: Sequence[ReadyInstance] = (), workers: int = 1
    ) -> dict[str, PlannedLevel]:
        # A step is not interrupted: what has begun goes first, whatever its deadline is.
        begun = [each for each in instances if each.left is not None]
        start = now + (1.0 + self.margin) / workers * math.fsum(each.left or 0.0 for each in begun)
        waiting = [each for each in instances if each.left is None]
        dues = {each.key: each.due - start for each in (*waiting, *ahead)}
        order = sorted((*waiting, *ahead), key=lambda each: dues[each.key])
        found = self._found(order, dues, workers)
        if workers > 1:
            found = {each.key: min(found[each.key], self._alone(each, dues[each.key])) for each in order}
        self._before = found
        times = [each.seconds(found[each.key]) if found[each.key] else 0.0 for each in order]
        stretched = [seconds * (1.0 + self.margin) / workers for seconds in times]
        ends = pseudo_deadlines(stretched, [dues[each.key] for each in order])
        given = {
            each.key: PlannedLevel(found[each.key], each.kept(found[each.key]), seconds, start + end)
            for each, seconds, end in zip(order, times, ends, strict=True)
        }
        given |= {each.key: PlannedLevel(seconds=each.left, by=start) for each in begun}
        return {each.key: given[each.key] for each in instances}

    def _found(self, order: Sequence[ReadyInstance], dues: Mapping[str, float], workers: int) -> Mapping[str, float]:
        before = self._before
        if all(each.key in before for each in order):
            least = _LITTLE if len(order) > 1 else 1.0  # nobody makes up for the error of the last one
            little, much = (
                [self._demand(each, dues[each.key], workers, times) for each in order] for times in (least, _MUCH)
            )
            if _fit(little, before):
                if not _fit(much, before):
                    return before  # to look for higher ones takes as long as to run a small instance
                higher = self._levels(much)
                return higher if self._rises(before, higher) else before
        return self._levels([self._demand(each, dues[each.key], workers) for each in order])

    def _rises(self, before: Mapping[str, float], after: Mapping[str, float]) -> bool:
        """Whether new levels are worth a change."""
        if (power := _POWERS.get(self._aim)) is not None:
            losses = ((1.0 - level) ** power - (1.0 - before[key]) ** power for key, level in after.items())
            return math.fsum(losses) < 0.0
        return any(level > before[key] for key, level in after.items())

    def _demand(self, instance: ReadyInstance, due: float, workers: int, times: float = 1.0) -> LevelDemand:
        """What an instance asks of all workers together, which count as one that is as fast as they are; so many times
        the usual time is left free before its deadline."""
        due -= min(times * self.free, _FREE * max(0.0, due))
        seconds = instance.by_level((1.0 + self.margin) / workers)
        return LevelDemand(instance.key, due, seconds, 0.0 if instance.thin else 1.0, instance.weight)

    def _alone(self, instance: ReadyInstance, due: float) -> float:
        """The highest level at which one worker answers an instance in time."""
        if not instance.thin:
            return 1.0
        return largest_ratio(instance.by_level(1.0 + self.margin), due - min(self.free, _FREE * max(0.0, due)))


def _fit(demands: Sequence[LevelDemand], levels: Mapping[str, float]) -> bool:
    """Whether all are in time at these levels, in this order."""
    ends = accumulate(demand.seconds(levels[demand.key]) for demand in demands)
    return all(end <= demand.due for end, demand in zip(ends, demands, strict=True))
