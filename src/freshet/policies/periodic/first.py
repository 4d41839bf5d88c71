"""Periodic queries before continuous ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from freshet.model import Abandon, Action, Decision, InstanceRun, InstanceView, RunInstances, View
from freshet.policies.around import Around
from freshet.policies.base import Policy
from freshet.policies.outcome import InstanceOutcome
from freshet.policies.periodic.levels import InstanceLevel, LevelManager
from freshet.policies.periodic.scheduler import PeriodicScheduler
from freshet.policies.reason import FEW, Candidate, Reason

_LONGEST_CREDIT = 1.0
"""Seconds of reserve that can be saved up, at most."""


class PeriodicFirst(Around):
    """Runs instances of periodic queries in the order of a scheduler. Another policy gets the time between them for
    continuous queries, and a share of the time in any case.

    Args:
        scheduler: Orders the instances.
        inner: Decides on continuous queries.
        reserve: Share of the time that continuous queries keep, in [0, 1), while some of their tuples wait.
        levels: Says how much instances keep; None: everything.
    """

    name = "periodic"

    def __init__(
        self,
        scheduler: PeriodicScheduler,
        inner: Policy,
        reserve: float = 0.0,
        levels: LevelManager | None = None,
    ) -> None:
        super().__init__(inner)
        self.scheduler, self.reserve, self.levels = scheduler, reserve, levels
        self._credit, self._since = 0.0, 0.0
        self._contended = False
        self._started: dict[int, float] = {}
        """Operators of continuous queries that run, with the time at which they began."""

    def released(self, view: View, instances: Sequence[InstanceView]) -> None:
        if self.levels is not None:
            self.levels.released(view, instances)
        self.inner.released(view, instances)

    def answered(self, view: View, outcome: InstanceOutcome) -> None:
        if self.levels is not None:
            self.levels.answered(view, outcome)
        self.inner.answered(view, outcome)

    def completed(self, view: View, operators: Iterable[int]) -> None:
        began = [self._started.pop(number) for number in operators if number in self._started]
        if began:
            self._credit -= view.now - min(began)
        self.inner.completed(view, operators)

    def decide(self, view: View) -> Decision:
        late = [each for each in view.instances if self._is_abandoned(view, each)]
        given_up = [Abandon(each.key) for each in late]
        order = self.scheduler.order(view, late)
        self._save(view, bool(order and view.ready))
        if not order or (view.ready and self.reserve and self._credit >= 0.0):
            inner = self.inner.decide(view)
            if inner.actions or not order:
                self._begin(view, inner)
                return Decision((*given_up, *inner.actions), inner.again)
        chosen = self.scheduler.together(view, order)
        levels = {} if self.levels is None else self.levels.assign(view, chosen)
        runs = RunInstances(tuple(_run(each, levels.get(each.key)) for each in chosen))
        actions: tuple[Action, ...] = (*given_up, runs)
        return Decision(actions)

    def _save(self, view: View, contended: bool) -> None:
        """The reserve grows while both kinds of work wait for each other; nothing is owed for idle time."""
        if self._contended:
            self._credit += self.reserve * view.workers * (view.now - self._since)
            self._credit = min(self._credit, self.reserve * _LONGEST_CREDIT)
        elif contended:
            self._credit = min(self._credit, 0.0)
        self._contended, self._since = contended, view.now

    def _begin(self, view: View, decision: Decision) -> None:
        if self._contended:
            self._started |= {number: view.now for step in decision.steps for number in step.nodes}

    def _is_abandoned(self, view: View, instance: InstanceView) -> bool:
        late = view.now > instance.deadline and not instance.running
        return late and view.queries[instance.query].promises.late == "abandon"

    def why(self, view: View, decision: Decision) -> Reason:
        if decision.steps or not any(isinstance(each, RunInstances) for each in decision.actions):
            return self.inner.why(view, decision)
        runs = [each.key for action in decision.actions if isinstance(action, RunInstances) for each in action.runs]
        order = self.scheduler.order(view)
        first = [_weighed(view, each) for key in runs[:FEW] for each in order if each.key == key]
        others = [_weighed(view, each) for each in order if each.key not in runs][:FEW]
        figures = {"overhead_s": view.overhead()}
        waiting = len(view.instances)
        return Reason(
            self.scheduler.name, self.scheduler.rule, figures, len(runs), waiting, tuple(first), tuple(others)
        )


def _weighed(view: View, instance: InstanceView) -> Candidate:
    """An instance and how long it still has; the operator is the one that answers."""
    (name, _), reads = instance.key, instance.inputs
    return Candidate(reads[0].node if reads else -1, (name,), {"due_s": instance.deadline - view.now})


def _run(instance: InstanceView, level: InstanceLevel | None) -> InstanceRun:
    if level is None:
        return InstanceRun(instance.key)
    return InstanceRun(instance.key, tuple(level.kept.items()), level.quality, timing=level.timing)
