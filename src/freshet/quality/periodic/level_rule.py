"""Level rules: who says how much of its windows an instance may read, so that its answer is in time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final

from freshet.model.promises.quality_table import PROPORTIONAL, QualityTable
from freshet.quality.periodic.answer_quality import answer_quality, kept_at
from freshet.quality.periodic.instance_meter import InstanceFigures
from freshet.quality.periodic.plan_time import PlanTime

LEAST: Final = 0.01
"""Share of a window that an instance reads at least."""


@dataclass(frozen=True)
class ReadyInstance:
    """An instance that was released and has not ended.

    Args:
        key: Names it.
        due: When its answer is due, in seconds of the clock.
        rows: Tuples of each of its windows that are still to be read.
        plan: What it takes, with its selectivities.
        table: The quality table of its query.
        thin: Whether some of its tuples may be left out.
        left: Seconds that it still takes, if it has begun: then it goes first, and its level does not change.
        weight: Importance of its query.
    """

    key: str
    due: float
    rows: Mapping[str, float]
    plan: PlanTime
    table: QualityTable = PROPORTIONAL
    thin: bool = True
    left: float | None = None
    weight: float = 1.0

    def seconds(self, level: float) -> float:
        """Seconds that it takes at a level; if nothing may be left out, those of level 1."""
        return self.plan.seconds(self.rows, self.kept(level))

    def by_level(self, stretch: float = 1.0) -> Callable[[float], float]:
        """The same as :meth:`seconds`, times a factor, to be asked often: every decision asks hundreds of times.

        >>> from freshet.quality.periodic import OperatorCost, PlanStep
        >>> plan = PlanTime((PlanStep("sum", ("s",), OperatorCost.given([1e-3], 0.0)),))
        >>> ReadyInstance("q", 1.0, {"s": 1000}, plan).by_level(2.0)(0.25)
        0.5
        """
        if self.table.inputs:
            return lambda level: stretch * self.seconds(level)
        terms, kept = [stretch * term for term in self._terms], self.table.kept
        if not self.thin:
            return lambda level: sum(terms)

        def seconds(level: float) -> float:
            share = 1.0 if level >= 1.0 else max(LEAST, kept(level))
            found = 0.0
            for term in terms:
                found = found * share + term
            return found

        return seconds

    @cached_property
    def _terms(self) -> list[float]:
        """The time as a polynomial in the share kept, the highest degree first."""
        return self.plan.terms(self.rows)[::-1]

    def kept(self, level: float) -> dict[str, float]:
        """The share of each of its streams that it reads at a level; nothing is named if it reads everything."""
        if level >= 1.0 or not self.thin:
            return {}
        return {stream: max(LEAST, share) for stream, share in kept_at(self.table, level, tuple(self.rows)).items()}


@dataclass(frozen=True, slots=True)
class PlannedLevel:
    """What an instance is given.

    Args:
        level: Quality that its answer will have.
        kept: Share of each of its streams that it reads.
        seconds: That it is expected to take; None: nobody knows.
        by: By when it should have ended: its pseudo-deadline.
    """

    level: float = 1.0
    kept: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None
    by: float | None = None


class LevelRule(ABC):
    """Gives levels to instances, at every release and every completion. It has no clock and runs nothing."""

    name: ClassVar[str]
    predicts: ClassVar[bool] = False
    """Whether it needs to know what instances cost: those of which nobody knows it read everything."""

    @abstractmethod
    def assign(
        self, now: float, instances: Sequence[ReadyInstance], ahead: Sequence[ReadyInstance] = (), workers: int = 1
    ) -> dict[str, PlannedLevel]:
        """The level of each instance that has not ended, by its key.

        Args:
            now: Time of the clock.
            instances: Those that were released and have not ended.
            ahead: Those whose release is still to come, before the last deadline of the others (RT §7). They take part
                of the time, and get no level yet.
            workers: Number of instances that run at once.
        """

    def finished(self, outcome: InstanceFigures) -> None:  # noqa: B027 (optional notice)
        """An instance ended, or was left out."""


class BestEffort(LevelRule):
    """Reads everything, whatever becomes of deadlines (RT §5.2.3).

    >>> BestEffort().assign(0.0, [ReadyInstance("q", 1.0, {"s": 10}, PlanTime(()))])
    {'q': PlannedLevel(level=1.0, kept={}, seconds=None, by=None)}
    """

    name = "best-effort"

    def assign(
        self, now: float, instances: Sequence[ReadyInstance], ahead: Sequence[ReadyInstance] = (), workers: int = 1
    ) -> dict[str, PlannedLevel]:
        return {each.key: PlannedLevel() for each in instances}


def uniform(instance: ReadyInstance, share: float) -> PlannedLevel:
    """The same share of all inputs of an instance.

    >>> uniform(ReadyInstance("q", 1.0, {"s": 10}, PlanTime(())), 0.5)
    PlannedLevel(level=0.5, kept={'s': 0.5}, seconds=None, by=None)
    """
    if share >= 1.0 or not instance.thin:
        return PlannedLevel()
    kept = dict.fromkeys(instance.rows, share)
    return PlannedLevel(answer_quality(instance.table, kept), kept)
