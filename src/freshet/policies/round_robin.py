"""Round robin over queries."""

from __future__ import annotations

from typing import ClassVar

from freshet.model import Plan, Step, View
from freshet.policies.base import rest_of_path
from freshet.policies.number_set import NumberSet
from freshet.policies.tracking import TrackingPolicy


class RoundRobin(TrackingPolicy):
    """Serves the queries in turn, each with all its paths pipelined (the RR of FAS §6, CAR §3.3.1).

    Args:
        rows: Tuples to take from each queue at once; None takes all that wait.
    """

    name: ClassVar[str] = "rr"

    def __init__(self, rows: int | None = None) -> None:
        super().__init__(rows)
        self._turns = NumberSet()
        self._last = -1

    def enter(self, view: View, number: int) -> None:
        self._turns.add(view.operators[number].query)

    def leave(self, number: int) -> None:
        """Nothing to do: a query whose turn comes while nothing of it is ready is passed over then."""

    def choose(self, view: View) -> Plan:
        """One step: the next query in turn that has waiting tuples."""
        turns = self._turns
        while turns:
            query = turns.following(self._last + 1)
            if query is None:
                self._last = -1
                continue
            plan = self._serve(view, query)
            if plan:
                self._last = query
                return plan
            turns.discard(query)
        return ()

    def _serve(self, view: View, query: int) -> Plan:
        ready = [number for path in view.queries[query].paths for number in path if number in view.ready]
        if len(ready) == 1:
            return self.plan(view, ready[0])
        chains = tuple(rest_of_path(view, number) for number in ready)
        return (Step(chains, self.rows),) if chains else ()
