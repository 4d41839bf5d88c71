"""What policies share that keep the ready operators in an order of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from freshet.model import Plan, Step, View
from freshet.policies.base import Policy, rest_of_path


class TrackingPolicy(Policy):
    """Follows the notices, so that a decision does not look at every queue.

    An operator is told to :meth:`enter` whenever it is ready and may have changed, and to :meth:`leave` when it has
    run. Between these an operator may stop being ready without notice (it was just started, its query is held):
    :meth:`choose` leaves out what is not in ``view.ready`` any more.

    Args:
        rows: Tuples to take from a queue at once; None takes all that wait.
    """

    def __init__(self, rows: int | None = None) -> None:
        self.rows = rows
        self._plans: dict[int, Plan] = {}

    @abstractmethod
    def enter(self, view: View, number: int) -> None:
        """An operator is ready, maybe since long; its queue or what is known of its path may have changed."""

    @abstractmethod
    def leave(self, number: int) -> None:
        """An operator ran or its query changed: what is kept of it is out of date, if anything is kept."""

    @abstractmethod
    def choose(self, view: View) -> Plan:
        """The next plan from what has entered; empty where nothing of it is ready."""

    def arrived(self, view: View, operators: Iterable[int]) -> None:
        """Tuples came into the queues of these operators."""
        ready, enter = view.ready, self.enter
        for number in operators:
            if number in ready:
                enter(view, number)

    def completed(self, view: View, operators: Iterable[int]) -> None:
        """These operators ran; what is known of the others of their paths changed with them."""
        paths = {view.operators[number].path: None for number in operators}
        for path in paths:
            self._again(view, path)

    def changed(self, view: View, query: int) -> None:
        """A query was added, dropped, quarantined, held, let go on or got another weight."""
        for path in view.queries[query].paths:
            self._again(view, path)

    def _again(self, view: View, path: tuple[int, ...]) -> None:
        for number in path:
            self.leave(number)
        for number in path:
            if number in view.ready:
                self.enter(view, number)

    def decide(self, view: View) -> Plan:
        """The plan to run next."""
        if not view.ready:
            return ()
        plan = self.choose(view)
        if not plan:
            # Nobody told us of them: the policy was not there when they came.
            for number in view.ready:
                self.enter(view, number)
            plan = self.choose(view)
        return plan

    def plan(self, view: View, number: int) -> Plan:
        """The plan that serves one operator: the rest of its path in one step."""
        plan = self._plans.get(number)
        if plan is None:
            plan = self._plans[number] = (Step((rest_of_path(view, number),), self.rows),)
        return plan
