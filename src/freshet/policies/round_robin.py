"""Round robin over queries."""

from __future__ import annotations

from typing import ClassVar, Final

from freshet.model import NOTHING, Decision, Step, View
from freshet.policies.tracking import TrackingPolicy
from freshet.policies.turns import Turns


class RoundRobin(TrackingPolicy):
    """Serves the queries in turn, each with all its operators pipelined (the RR of FAS §6, CAR §3.3.1).

    Work that queries share runs in the turn of the first of them; its output waits for the turns of the others.

    Args:
        rows: Tuples to take from each queue at once; None takes all that wait.
    """

    name: ClassVar[str] = "rr"
    rule = "next query in turn"

    def __init__(self, rows: int | None = None) -> None:
        super().__init__(rows)
        self._turns = Turns()
        self._whole: dict[int, Decision] = {}

    def changed(self, view: View, query: int) -> None:
        """A query was added, dropped, quarantined, held or resumed, or its promises changed."""
        self._whole.pop(query, None)
        super().changed(view, query)

    def enter(self, view: View, number: int) -> None:
        for query in view.operators[number].queries:
            self._turns.add(query)

    def leave(self, number: int) -> None:
        """Nothing to do: if none of a query's operators is ready in its turn, it is passed over."""

    def choose(self, view: View) -> Decision:
        """One step: the next query in turn that has waiting tuples."""
        ready, queries = view.ready.keys(), view.queries
        query = self._turns.next(lambda query: not ready.isdisjoint(queries[query].operators))
        return NOTHING if query is None else self._turn(view, query)

    def _turn(self, view: View, query: int) -> Decision:
        decision = self._whole.get(query)
        if decision is None:
            decision = self._whole[query] = Decision.run(Step(tuple(view.queries[query].operators), self.rows))
        return decision

    def weighs(self, view: View, operator: int) -> dict[str, float]:
        queries = view.operators[operator].queries
        # Shared work runs in the turn of its first query.
        away = min((query - self._turns.last) % len(view.queries) for query in queries)
        return {"turns_away": away, "waiting": view.operators[operator].pending}


POLICIES: Final = (RoundRobin,)
