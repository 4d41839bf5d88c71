"""Policies that rank queries by value over cost."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

from freshet.model import Decision, View
from freshet.policies.aurora.calendar_queue import CalendarQueue
from freshet.policies.ratio.steps import OneQuery, StepChooser
from freshet.policies.tracking import TrackingPolicy

_LEAST_COST = 1e-12
"""Lowest cost, in seconds: an operator that has cost nothing so far still has a ratio."""


class Terms(NamedTuple):
    """The statistics of a waiting operator and all operators behind it (FAS §2)."""

    selectivity: float
    """S: tuples that reach an output for each waiting tuple, at most 1; the mean over several outputs."""
    no_match: float
    """log(1 - S): minus infinity if every tuple matches."""
    cost: float
    """C_avg: expected seconds to take a waiting tuple to all outputs."""
    weight: float
    """The weight of its query. Shared work has the greatest weight of its queries, times the number of its outputs."""


class RatioPolicy(TrackingPolicy):
    """Serves the waiting operator with the highest :meth:`priority`, kept in a calendar queue (FAS §4.5).

    A priority is a ratio: the value of processing the waiting tuples (:meth:`value`, v) over the seconds that this
    takes (:meth:`cost`, c). Only operators that received tuples or ran are looked at again. A *step chooser* makes the
    step: one query, as in the papers, or a set of queries.

    Args:
        rows: Tuples to take from a queue at once; None takes all that wait.
        weighted: Whether priorities are multiplied by the weights of the queries (FAS §4.4).
        steps: Chooses the step from the ranking.
    """

    def __init__(self, rows: int | None = None, *, weighted: bool = True, steps: StepChooser | None = None) -> None:
        super().__init__(rows)
        self.queue = CalendarQueue()
        self.weighted = weighted
        self.steps: StepChooser = steps or OneQuery()
        self._terms: dict[int, Terms] = {}
        self._outdated = False

    @abstractmethod
    def priority(self, view: View, operator: int) -> float:
        """The ratio v / c of an operator's waiting tuples."""

    def cost(self, view: View, operator: int) -> float:
        """c: expected seconds of taking the waiting tuples (at most ``rows``) to the output."""
        waiting = view.operators[operator].pending
        return self.terms(view, operator).cost * (waiting if self.rows is None else min(waiting, self.rows))

    def value(self, view: View, operator: int) -> float:
        """v: the gain from processing these tuples."""
        return self.priority(view, operator) * self.cost(view, operator)

    def terms(self, view: View, operator: int) -> Terms:
        """Selectivity, cost and weight of an operator and all operators behind it; remembered until it runs."""
        terms = self._terms.get(operator)
        if terms is None:
            terms = self._terms[operator] = self._look_up(view, operator)
        return terms

    def _look_up(self, view: View, operator: int) -> Terms:
        matches, cost = self._straight(view, operator) or self._spread(view, operator)
        selectivity = sum(matches) / len(matches) if matches else 0.0
        no_match = math.log1p(-selectivity) if selectivity < 1.0 else -math.inf
        weight = view.operators[operator].promises.weight if self.weighted else 1.0
        return Terms(selectivity, no_match, max(cost, _LEAST_COST), weight * len(matches))

    def _straight(self, view: View, operator: int) -> tuple[list[float], float] | None:
        """Selectivity to the output and cost, if there is only one way to go."""
        line = self.through.line(view, operator)
        if line is None:
            return None
        reach, cost, operators = 1.0, 0.0, view.operators
        for number in line:
            each = operators[number]
            cost += reach * each.cost
            reach *= each.selectivity
        return [min(1.0, reach)], cost

    def _spread(self, view: View, operator: int) -> tuple[list[float], float]:
        """Selectivity to each of the outputs, and the cost of reaching all of them."""
        reach = {operator: 1.0}
        matches, cost = [], 0.0
        for number in self.through.of(view, operator):
            each = view.operators[number]
            cost += reach[number] * each.cost
            goes = reach[number] * each.selectivity
            matches += [min(1.0, goes)] * len(each.outputs)
            for reader in each.readers:
                reach[reader] = reach.get(reader, 0.0) + goes
        return matches, cost

    def rerank(self) -> None:
        """Makes the next decision compute all priorities again."""
        self._outdated = True

    def enter(self, view: View, number: int) -> None:
        self.queue.put(number, self.priority(view, number))

    def leave(self, number: int) -> None:
        self._terms.pop(number, None)
        self.queue.remove(number)

    def weighs(self, view: View, operator: int) -> dict[str, float]:
        selectivity, _, cost, weight = self.terms(view, operator)
        known = {"priority": self.priority(view, operator), "waiting": view.operators[operator].pending}
        return known | {"selectivity": selectivity, "cost_s": cost} | ({"weight": weight} if weight != 1.0 else {})

    def weighs_in_all(self, view: View) -> dict[str, float]:
        return self.steps.weighs(view)

    def order(self, view: View) -> Iterator[int]:
        """The operators by priority, highest first."""
        return (number for number, _ in self.queue)

    def choose(self, view: View) -> Decision:
        if self._outdated:
            self._outdated = False
            self._terms.clear()
            for number in view.ready:
                self.enter(view, number)
        return self.steps.choose(self, view)
