"""The base of the QoS-aware schedulers: schedules of a given size, with and without push-through."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, Literal

from freshet.model import NOTHING, Curve, Decision, RunStep, Step, UserError, View
from freshet.policies.aurora.rest_costs import RestCosts
from freshet.policies.aurora.schedule_size import ScheduleSize
from freshet.policies.aurora.trains import Trains, WholeQueue
from freshet.policies.base import Policy
from freshet.policies.pushing import PushThrough

SizeOrAuto = int | Literal["auto"]
"""The number of operators in a schedule, or the word for one that is chosen by itself."""
LEVEL: Final = Curve([(0.0, 1.0)])
"""The curve of a query that has none: its answers lose nothing, so it waits for idle time."""


class SchedulePolicy(Policy):
    """Puts the best operators into a schedule, which is run before the next one is made (CAR §4.2-4.5).

    *A box at a time* runs each operator alone, so that its output waits in the next queue. *Push-through* (§4.5) also
    runs all operators behind it, so that urgent tuples reach the output. *Fused* push-through runs the schedule as one
    step, which pays the overhead of a step once. It is cut short before it breaks a promise that can still be kept.

    ``operations`` counts the operations of scheduling, for those who charge for them: a look at an operator, a queue or
    a bucket, or one comparison.

    Args:
        size: N, the number of operators in a schedule; "auto": with push-through it is chosen anew for each decision,
            by :class:`~freshet.policies.aurora.schedule_size.ScheduleSize`.
        trains: How many of the waiting tuples to take.
    """

    keeps_curves = True
    push: ClassVar[bool] = False
    fuse: ClassVar[bool] = False
    auto: ClassVar[tuple[str, ...]] = ()
    """Arguments that may be the word "auto"."""
    ranks_all: ClassVar[bool] = True
    """Whether a decision ranks all that is ready, however few of them it wants."""

    def __init__(self, size: SizeOrAuto = 10, *, trains: Trains | None = None) -> None:
        if size == "auto" and "size" not in self.auto:
            raise UserError(f"{self.name}: only policies that end in -push choose the size of a schedule by themselves")
        if size != "auto" and size < 1:
            raise UserError(f"{self.name}: a schedule of {size} operators is empty: use 1 or more")
        self.size = 1 if size == "auto" else size
        self._sizes = ScheduleSize() if size == "auto" else None
        self.trains: Trains = trains or WholeQueue()
        self.operations = 0
        self.through = PushThrough()
        self.costs = RestCosts(self.through)
        self._completed = 0
        self._runs: dict[int, RunStep] = {}

    @abstractmethod
    def ranked(self, view: View) -> Sequence[int]:
        """The best ready operators, at most ``size``, best first."""

    def completed(self, view: View, operators: Iterable[int]) -> None:
        """These operators ran. Notices are frequent, so they are only counted until the next decision."""
        self._completed += 1
        if self._sizes is not None:
            self._sizes.ran(view)

    def changed(self, view: View, query: int) -> None:
        """A query changed: paths behind operators and their costs are looked up again."""
        self.costs.forget()
        self.through.forget()
        self._runs.clear()

    def decide(self, view: View) -> Decision:
        """A schedule: one step for each of the best operators, or all of them in one step."""
        if not view.ready:
            return NOTHING
        self.costs.ran(self._completed)
        self._completed = 0
        chosen = self.ranked(view) if self._sizes is None else self._worth_deciding(view, self._sizes)
        if self.fuse:
            return self._fused(view, chosen)
        if isinstance(self.trains, WholeQueue):
            try:
                return Decision(tuple(map(self._runs.__getitem__, chosen)))
            except KeyError:
                return Decision(tuple(self._run(view, number) for number in chosen))
        return Decision.run(*(Step(self._nodes(view, number), self.trains.rows(view, number)) for number in chosen))

    def computation(self, view: View, operator: int) -> float:
        """ect: expected seconds to take an operator's waiting tuples to the output (CAR §4.2.2), with :meth:`calling`.

        With a box at a time, tuples that wait further on come first; push-through leaves none there.
        """
        operators = view.operators
        if self.push:
            return view.overhead() + operators[operator].pending * self.costs.of(view, operator)
        return self.calling(view, operator) + sum(
            operators[number].pending * self.costs.of(view, number)
            for number in self.through.of(view, operator)
            if operators[number].pending
        )

    def calling(self, view: View, operator: int) -> float:
        """Overhead of the steps that take tuples from an operator to the output: one step with push-through, else one
        for each box. CAR §4.2.2 has no such overhead; on Spark it is most of the cost of a small train."""
        return view.overhead() * (1 if self.push else len(self.through.of(view, operator)))

    def expected_latency(self, view: View, operator: int) -> float:
        """eol: the mean latency of the waiting tuples if they were pushed to the output now (CAR §4.2.2)."""
        return view.now - view.operators[operator].mean_arrival + self.computation(view, operator)

    def curve(self, view: View, operator: int) -> Curve:
        """The latency curve of the queries that an operator works for."""
        return view.operators[operator].promises.curve or LEVEL

    def weighs(self, view: View, operator: int) -> dict[str, float]:
        curve, latency = self.curve(view, operator), self.expected_latency(view, operator)
        figures = {"slope": curve.slope(latency), "slack_s": curve.slack(latency), "latency_s": latency}
        return figures | {"waiting": view.operators[operator].pending}

    def _worth_deciding(self, view: View, sizes: ScheduleSize) -> Sequence[int]:
        """The best operators, as many as pay for the decision."""
        if not self.ranks_all:
            self.size = sizes.before(view)
            return self.ranked(view)
        self.size, before = len(view.ready), self.operations
        ranked = self.ranked(view)
        return ranked[: sizes.after(view, self.operations - before, (self._seconds(view, each) for each in ranked))]

    def _seconds(self, view: View, operator: int) -> float:
        """Expected seconds of a step with push-through."""
        work = view.operators[operator].pending * self.costs.of(view, operator)
        return view.overhead(self.through.of(view, operator)) + work

    def _nodes(self, view: View, operator: int) -> tuple[int, ...]:
        return self.through.of(view, operator) if self.push else (operator,)

    def _run(self, view: View, operator: int) -> RunStep:
        return self._runs.setdefault(operator, RunStep(Step(self._nodes(view, operator))))

    def _fused(self, view: View, chosen: Sequence[int]) -> Decision:
        members = chosen[: self._keeping_promises(view, chosen)]
        if not members:
            return NOTHING
        rows = [self.trains.rows(view, number) for number in members]
        limits = [limit for limit in rows if limit is not None]
        return Decision.run(Step(self.through.together(view, members), min(limits, default=None)))

    def _keeping_promises(self, view: View, chosen: Sequence[int]) -> int:
        """How many operators to run in one step: all outputs leave at its end, so it must not outlast any slack."""
        seconds, latest = view.overhead(self.through.together(view, chosen)), float("inf")
        for count, number in enumerate(chosen):
            first, alone = view.operators[number], self.computation(view, number)
            # An operator that would be late even alone has no say: it must not keep others from sharing the step.
            until = alone + self.curve(view, number).slack(view.now - first.mean_arrival + alone)
            seconds += first.pending * self.costs.of(view, number)
            latest = min(latest, until)
            if count and seconds > latest:
                return count
        return len(chosen)
