"""Fixed priorities by slack."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Final

from freshet.model import View
from freshet.policies.aurora.schedule import SchedulePolicy, SizeOrAuto
from freshet.policies.aurora.trains import Trains


class FixedPriority(SchedulePolicy):
    """Runs the operators with the least static slack: the curve's promise minus what a tuple still costs (CAR §4.2.1),
    including the overhead of the steps up to the output.

    It is adapted from deadline-monotonic scheduling. It is cheap, and good as long as the load never exceeds what the
    promises allow; under overload it goes on serving tuples that are already late.

    The example of CAR Table 4.1: two applications of three boxes that cost 1 each, deadlines 4 and 8.

    >>> from freshet.model import Curve, Promises
    >>> from freshet.simulation.view import RecordView
    >>> view, policy = RecordView(), FixedPriority()
    >>> for name, deadline in (("first", 4.0), ("second", 8.0)):
    ...     _ = view.add(name, [(1.0, 1.0)] * 3, Promises(curve=Curve.deadline(deadline)))
    >>> [policy.priority(view, operator) for operator in range(6)]
    [1.0, 2.0, 3.0, 5.0, 6.0, 7.0]
    """

    name: ClassVar[str] = "fixed-priority"
    rule = "least static slack"

    def __init__(self, size: SizeOrAuto = 10, *, trains: Trains | None = None) -> None:
        super().__init__(size, trains=trains)
        self._ranks: list[int] = []
        self._version = -1

    def priority(self, view: View, operator: int) -> float:
        """The static slack of an operator; the least comes first."""
        return self.curve(view, operator).promise - self.costs.of(view, operator) - self.calling(view, operator)

    def ranked(self, view: View) -> Sequence[int]:
        """The ready operators by slack, and by number if slacks are equal, so that the order never changes."""
        if self._version != self.costs.version or len(self._ranks) != len(view.operators):
            self._rank(view)
        ready = view.ready
        count = len(ready)
        self.operations += 1 + count + int(count * math.log2(count))
        return sorted(ready, key=self._ranks.__getitem__)[: self.size]

    def weighs(self, view: View, operator: int) -> dict[str, float]:
        return {"static_slack_s": self.priority(view, operator), "waiting": view.operators[operator].pending}

    def _rank(self, view: View) -> None:
        slacks = [self.priority(view, operator) for operator in range(len(view.operators))]
        self._ranks = [0] * len(slacks)
        for rank, operator in enumerate(sorted(range(len(slacks)), key=slacks.__getitem__)):
            self._ranks[operator] = rank
        self._version = self.costs.version


class FixedPriorityPush(FixedPriority):
    """Fixed priorities with push-through (CAR §4.5)."""

    name: ClassVar[str] = "fixed-priority-push"
    push: ClassVar[bool] = True
    auto: ClassVar[tuple[str, ...]] = ("size",)


class FixedPriorityFused(FixedPriorityPush):
    """Fixed priorities with push-through, a schedule as one step."""

    name: ClassVar[str] = "fixed-priority-fused"
    fuse: ClassVar[bool] = True
    auto: ClassVar[tuple[str, ...]] = ()


POLICIES: Final = (FixedPriority, FixedPriorityPush, FixedPriorityFused)
