"""Policies that rank queries by value over cost."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple

from freshet.model import Plan, View
from freshet.policies.calendar_queue import CalendarQueue
from freshet.policies.steps import OneQuery, StepChooser
from freshet.policies.tracking import TrackingPolicy

_LEAST_COST = 1e-12
"""Seconds; a path that has cost nothing so far still has a ratio."""


class Terms(NamedTuple):
    """What is known of the rest of a path, from a waiting operator to the output (FAS §2)."""

    selectivity: float
    """S: output tuples per waiting tuple, at most 1."""
    no_match: float
    """log(1 - S): minus infinity where every tuple matches."""
    cost: float
    """C_avg: expected seconds per waiting tuple."""
    weight: float
    """Of its query."""


class RatioPolicy(TrackingPolicy):
    """Serves the waiting operator with the highest :meth:`priority`, kept in a calendar queue (FAS §4.5).

    A priority is a ratio: the value of processing what waits (:meth:`value`, v) over the seconds that it takes
    (:meth:`cost`, c). Only operators that received tuples or ran are looked at again. A *step chooser* makes the step:
    one query, as in the papers, or a set of queries.

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
        """v: what is gained once these tuples are processed."""
        return self.priority(view, operator) * self.cost(view, operator)

    def terms(self, view: View, operator: int) -> Terms:
        """Selectivity, cost and weight of the rest of the operator's path; kept until it runs."""
        terms = self._terms.get(operator)
        if terms is None:
            terms = self._terms[operator] = self._look_up(view, operator)
        return terms

    def _look_up(self, view: View, operator: int) -> Terms:
        first = view.operators[operator]
        reach, cost = 1.0, 0.0
        for number in first.path[first.path.index(operator) :]:
            each = view.operators[number]
            cost += reach * each.cost
            reach *= each.selectivity
        selectivity = min(1.0, reach)
        no_match = math.log1p(-selectivity) if selectivity < 1.0 else -math.inf
        weight = view.queries[first.query].weight if self.weighted else 1.0
        return Terms(selectivity, no_match, max(cost, _LEAST_COST), weight)

    def rerank(self) -> None:
        """Has all priorities computed anew at the next decision."""
        self._outdated = True

    def enter(self, view: View, number: int) -> None:
        self.queue.put(number, self.priority(view, number))

    def leave(self, number: int) -> None:
        self._terms.pop(number, None)
        self.queue.remove(number)

    def choose(self, view: View) -> Plan:
        if self._outdated:
            self._outdated = False
            self._terms.clear()
            for number in view.ready:
                self.enter(view, number)
        return self.steps.choose(self, view)
