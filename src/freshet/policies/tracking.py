"""The base of policies that keep the ready operators in an order of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from freshet.model import NOTHING, Decision, Step, View, lead_to
from freshet.policies.base import Policy
from freshet.policies.pushing import PushThrough

_MOST_KEPT: Final = 100_000
"""Maximum number of sets of operators whose neighbours are remembered."""


class TrackingPolicy(Policy):
    """Follows the notices, so that a decision does not look at every queue.

    It calls :meth:`enter` for an operator that is ready and may have changed, and :meth:`leave` for one that has run.
    In between, an operator may stop being ready without notice (it was just started, or its query is held):
    :meth:`choose` leaves out what is no longer in ``view.ready``.

    Args:
        rows: Tuples to take from a queue at once; None takes all that wait.
    """

    def __init__(self, rows: int | None = None) -> None:
        self.rows = rows
        self.through = PushThrough()
        self._near: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._decisions: dict[int, Decision] = {}

    @abstractmethod
    def enter(self, view: View, number: int) -> None:
        """An operator is ready (it may have been for a while); its queue or its path's statistics may have changed."""

    @abstractmethod
    def leave(self, number: int) -> None:
        """An operator ran or its query changed: whatever is remembered of it is out of date."""

    @abstractmethod
    def choose(self, view: View) -> Decision:
        """The next decision from what has entered; :data:`~freshet.model.NOTHING` if none of it is ready."""

    def arrived(self, view: View, operators: Iterable[int]) -> None:
        """Tuples came into the queues of these operators."""
        ready, enter = view.ready, self.enter
        for number in operators:
            if number in ready:
                enter(view, number)

    def completed(self, view: View, operators: Iterable[int]) -> None:
        """These operators ran, which changed the statistics of those before and behind them, too."""
        ran = tuple(operators)
        near = self._near.get(ran)
        if near is None:
            near = self._near[ran] = self._neighbours(view, ran)
            if len(self._near) > _MOST_KEPT:
                self._near.clear()
        self._again(view, near)

    def changed(self, view: View, query: int) -> None:
        """A query was added, dropped, quarantined, held or resumed, or its promises changed."""
        self.through.forget()
        self._near.clear()
        self._decisions.clear()
        self._again(view, view.queries[query].operators)

    def _neighbours(self, view: View, operators: Iterable[int]) -> tuple[int, ...]:
        """Operators with all operators before and behind them, each once."""
        near = ((*lead_to(view, number)[:-1], *self.through.of(view, number)) for number in operators)
        return tuple(dict.fromkeys(chain.from_iterable(near)))

    def _again(self, view: View, numbers: Sequence[int]) -> None:
        ready, leave = view.ready, self.leave
        for number in numbers:
            leave(number)
        for number in numbers:
            if number in ready:
                self.enter(view, number)

    def decide(self, view: View) -> Decision:
        """What to run next."""
        if not view.ready:
            return NOTHING
        decision = self.choose(view)
        if not decision.actions:
            # No notice told of them: the policy was not there when they came.
            for number in view.ready:
                self.enter(view, number)
            decision = self.choose(view)
        return decision

    def serve(self, view: View, number: int) -> Decision:
        """Runs an operator and all operators behind it in one step."""
        decision = self._decisions.get(number)
        if decision is None:
            decision = self._decisions[number] = Decision.run(Step(self.through.of(view, number), self.rows))
        return decision
