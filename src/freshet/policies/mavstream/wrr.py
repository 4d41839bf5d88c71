"""Weighted round robin over operators."""

from __future__ import annotations

from typing import ClassVar, Final

from freshet.model import NOTHING, Decision, Step, UserError, View
from freshet.policies.aurora.trains import TimeQuantum
from freshet.policies.tracking import TrackingPolicy
from freshet.policies.turns import Turns


class WeightedRoundRobin(TrackingPolicy):
    """Serves operators in turn, from those that read streams towards the outputs, each for a time quantum by its kind
    and its place (MAV §3.1, 2).

    With ``leaf`` and ``join`` of 1 it is MavStream's round robin (§3.1, 1): the same as ``baat`` with a
    :class:`~freshet.policies.TimeQuantum`.

    Args:
        quantum: Seconds of work that an operator gets in its turn, by its measured cost; at least one tuple.
        leaf: How many quanta an operator gets that reads a stream.
        join: How many quanta a join gets; one that reads a stream gets ``leaf`` times as many.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); path = view.add("q", [(0.001, 1.0), (0.001, 1.0)])
    >>> for number in path:
    ...     view.operators[number].pending, view.ready[number] = 100, None
    >>> policy = WeightedRoundRobin(0.01, leaf=3.0)
    >>> [policy.decide(view).steps[0] for _ in range(3)]
    [Step(nodes=(0,), rows=30), Step(nodes=(1,), rows=10), Step(nodes=(0,), rows=30)]
    """

    name: ClassVar[str] = "wrr"
    rule = "next operator in turn, for its quanta"

    def __init__(self, quantum: float = 0.02, leaf: float = 2.0, join: float = 2.0) -> None:
        super().__init__()
        if not min(quantum, leaf, join) > 0.0:
            raise UserError(f"{self.name}: an operator without time never runs: give all arguments more than 0")
        self._leaf, self._join = leaf, join
        weights = {first * second for first in (1.0, leaf) for second in (1.0, join)}
        self._trains = {weight: TimeQuantum(quantum * weight, to_output=False) for weight in weights}
        self._turns = Turns()

    def quanta(self, view: View, operator: int) -> float:
        """How many quanta an operator gets."""
        each = view.operators[operator]
        leaf = self._leaf if len(each.inputs) < each.ports else 1.0
        return leaf * (self._join if each.kind == "join" else 1.0)

    def enter(self, view: View, number: int) -> None:
        self._turns.add(number)

    def leave(self, number: int) -> None:
        """Nothing to do: an operator that is not ready in its turn is passed over."""

    def choose(self, view: View) -> Decision:
        """One step: the next operator in turn that has waiting tuples."""
        number = self._turns.next(view.ready.__contains__)
        if number is None:
            return NOTHING
        return Decision.run(Step((number,), self._trains[self.quanta(view, number)].rows(view, number)))

    def weighs(self, view: View, operator: int) -> dict[str, float]:
        away = (operator - self._turns.last) % len(view.operators)
        return {
            "turns_away": away,
            "quanta": self.quanta(view, operator),
            "waiting": view.operators[operator].pending,
        }


POLICIES: Final = (WeightedRoundRobin,)
