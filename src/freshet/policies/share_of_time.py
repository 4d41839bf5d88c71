"""Plain shares of time: stride scheduling over queries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from freshet.model import NOTHING, Decision, Step, UserError, View
from freshet.policies.base import Policy

_LEAST_COST: Final = 1e-9
"""Lowest cost of a tuple, in seconds."""


class ShareOfTime(Policy):
    """Gives each query a share of the workers' time in proportion to its weight, whatever its load (CAR §6.3.4).

    It is stride scheduling. Each query has a *pass*: the time that it has used, over its weight. The waiting query with
    the least pass is served next, with all its operators, for about a quantum of time. What a step uses is expected
    from learned costs and overhead. A query without work saves nothing up: when it has some again, its pass is that of
    the query served last, if its own is less. So the time that idle queries leave is dealt out by weight.

    If the weight of a query changes, so does what it has had beyond the others, over its weight: otherwise a query that
    ran once while it weighed next to nothing would wait for ever.

    Work that queries share runs in the turn of the first of them, and each pays its part of it.

    Args:
        quantum: Seconds that a turn should take besides its overhead.

    >>> from freshet.simulation.executor import Profile
    >>> from freshet.simulation.world import SimulatedQuery, World
    >>> import numpy as np
    >>> flood = {name: np.zeros(4000) for name in ("a", "b")}
    >>> three, one = (SimulatedQuery.straight(f"q_{name}", name, [Profile(0.01)], weight=weight)
    ...               for name, weight in (("a", 0.75), ("b", 0.25)))
    >>> world = World(flood, [three, one], ShareOfTime())
    >>> world.run(until=20.0)
    >>> counts = {name: query["tuples_out"] for name, query in world.engine.snapshot()["queries"].items()}
    >>> round(counts["q_a"] / counts["q_b"], 1)
    3.0
    """

    name: ClassVar[str] = "share-of-time"
    rule = "has had the least time for its weight"

    def __init__(self, quantum: float = 0.05) -> None:
        if not 0.0 < quantum < float("inf"):
            raise UserError(f"share-of-time: a quantum of {quantum} s is not above 0")
        self.quantum = quantum
        self._passes: dict[int, float] = {}
        self._weights: dict[int, float] = {}
        """The weights by which queries have paid."""
        self._now = 0.0

    def changed(self, view: View, query: int) -> None:
        """A query that is gone has no pass, as its number may be given to another; with another weight, it has
        another one."""
        if not view.queries[query].operators or all(
            query not in view.operators[number].queries for number in view.queries[query].operators
        ):
            self._passes.pop(query, None)
            self._weights.pop(query, None)
        elif query in self._weights:
            weight = view.queries[query].promises.weight
            self._passes[query] = self._now + (self._pass(query) - self._now) * self._weights[query] / weight
            self._weights[query] = weight

    def decide(self, view: View) -> Decision:
        """A turn of the query with the least pass."""
        waiting: dict[int, list[int]] = {}
        for number in view.ready:
            for query in view.operators[number].queries:
                waiting.setdefault(query, []).append(number)
        if not waiting:
            return NOTHING
        query = min(waiting, key=lambda each: (self._pass(each), each))
        self._now = self._pass(query)
        nodes = tuple(view.queries[query].operators)
        costs = {number: self._cost(view, query, number) for number in waiting[query]}
        rows = max(1, int(self.quantum / max(*costs.values(), _LEAST_COST)))
        self._pay(view, query, nodes, {number: min(rows, view.operators[number].pending) for number in costs}, costs)
        return Decision.run(Step(nodes, rows))

    def _pass(self, query: int) -> float:
        return max(self._now, self._passes.get(query, 0.0))

    def _pay(
        self, view: View, query: int, nodes: tuple[int, ...], rows: dict[int, int], costs: dict[int, float]
    ) -> None:
        """Charges what the turn is expected to take; what is shared, to all that share it."""
        self._charge(view, (query,), view.overhead(nodes))
        for number, count in rows.items():
            self._charge(view, view.operators[number].queries, count * costs[number])

    def _charge(self, view: View, queries: Iterable[int], seconds: float) -> None:
        payers = tuple(queries)
        for query in payers:
            weight = view.queries[query].promises.weight
            self._passes[query] = self._pass(query) + seconds / len(payers) / weight
            self._weights[query] = weight

    def _cost(self, view: View, query: int, number: int) -> float:
        """Expected seconds of taking a waiting tuple to the output of a query."""
        reach, cost = {number: 1.0}, 0.0
        for node in view.queries[query].operators:
            share = reach.get(node)
            if share is not None:
                operator = view.operators[node]
                cost += share * operator.cost
                for reader in operator.readers:
                    reach[reader] = reach.get(reader, 0.0) + share * operator.selectivity
        return cost

    def weighs(self, view: View, operator: int) -> dict[str, float]:
        queries = view.operators[operator].queries
        return {"pass_s": min(map(self._pass, queries)), "waiting": view.operators[operator].pending}


POLICIES: Final = (ShareOfTime,)
