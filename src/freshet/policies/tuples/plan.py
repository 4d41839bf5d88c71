"""Plans: what runs for the tuples that wait for an operator, and what that earns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from freshet.model import View
from freshet.policies.ratio.price import OverheadPrice, Price
from freshet.policies.ratio.set_step import best_prefix
from freshet.policies.tuples.fragments import LEAST_COST, Cut, Fragment, fragments
from freshet.policies.tuples.job_tree import JobTree, job_tree


@dataclass(frozen=True, slots=True)
class Plan:
    """Operators that run together for each tuple that waits for the first of them.

    Args:
        nodes: The operators, each after those that it reads.
        profit: What they earn for a tuple.
        cost: Seconds that they take for a tuple.
        below: Seconds of a tuple that are left when they have run, before all that was promised is done.
    """

    nodes: tuple[int, ...]
    profit: float
    cost: float
    below: float = 0.0

    @property
    def density(self) -> float:
        """Profit per second."""
        return self.profit / max(self.cost, LEAST_COST)


class JobPlanner(Protocol):
    """Makes plans, and remembers what follows from costs and worths until it is told to forget it."""

    operations: int
    """Looks at operators and comparisons."""

    def plan(self, view: View, operator: int, worth: Mapping[int, float], rows: int) -> Plan:
        """What runs for the first ``rows`` tuples that wait for an operator."""

    def forget(self) -> None:
        """Costs, worths or queries changed."""


class BoxPlanner:
    """A box at a time, as in Aurora (WU §4.6.1.1): its profit is what all answers behind it are worth, and its cost is
    its own. It is due before all that is below it has to begin.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView.over({0: (1, 2), 1: (), 2: ()}, {1: (2.0, 1.0), 2: (4.0, 1.0)})
    >>> BoxPlanner().plan(view, 0, {0: 10.0, 1: 8.0}, rows=5)
    Plan(nodes=(0,), profit=18.0, cost=1.0, below=6.0)
    """

    def __init__(self) -> None:
        self.operations = 0
        self._known: dict[int, Plan] = {}

    def plan(self, view: View, operator: int, worth: Mapping[int, float], rows: int) -> Plan:
        """The operator alone."""
        plan = self._known.get(operator)
        if plan is None:
            tree = job_tree(view, operator, worth)
            self.operations += len(tree.jobs)
            profit = sum([job.profit for job in tree.jobs])
            plan = self._known[operator] = Plan((operator,), profit, tree.jobs[0].cost, tree.below[0])
        return plan

    def forget(self) -> None:
        """Forgets all plans."""
        self._known.clear()


class FragmentPlanner:
    """The densest fragment of the job tree; if a step itself has a price, also those that come next, as long as that
    raises what is earned per second (WU §4.6.2.2; the prefix of :func:`~freshet.policies.ratio.set_step.best_prefix`).

    Args:
        cut: Cuts trees into fragments.
        price: Price of a step.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView.over({0: (1, 2), 1: (), 2: ()}, {1: (2.0, 1.0), 2: (4.0, 1.0)})
    >>> FragmentPlanner().plan(view, 0, {0: 12.0, 1: 8.0}, rows=5)
    Plan(nodes=(0, 1), profit=12.0, cost=3.0, below=0.0)
    """

    def __init__(self, cut: Cut = fragments, price: Price | None = None) -> None:
        self.operations = 0
        self._cut, self._price = cut, price or OverheadPrice()
        self._known: dict[int, tuple[JobTree, list[Fragment]]] = {}
        self._plans: dict[tuple[int, int], Plan] = {}

    def plan(self, view: View, operator: int, worth: Mapping[int, float], rows: int) -> Plan:
        """The best fragments."""
        tree, ranked = self.ranked(view, operator, worth)
        count = 1
        if len(ranked) > 1:
            items = [(rows * each.profit, rows * each.cost) for each in ranked]
            count = max(1, best_prefix(items, self._price.seconds(view)))
            self.operations += count
        plan = self._plans.get((operator, count))
        if plan is None:
            plan = self._plans[operator, count] = _plan_of(tree, ranked[:count])
        return plan

    def ranked(self, view: View, operator: int, worth: Mapping[int, float]) -> tuple[JobTree, list[Fragment]]:
        """The job tree of an operator with its fragments, densest first. Jobs in which nothing is earned come last."""
        known = self._known.get(operator)
        if known is None:
            tree = job_tree(view, operator, worth)
            self.operations += len(tree.jobs) ** 2
            ranked = self._cut(tree)
            inside = {place for each in ranked for place in each.jobs}
            rest = tuple(place for place in range(len(tree.jobs)) if place not in inside)
            if rest:
                ranked = [*ranked, Fragment(rest, 0.0, sum([tree.jobs[place].cost for place in rest]))]
            known = self._known[operator] = tree, ranked
        return known

    def forget(self) -> None:
        """Forgets all plans."""
        self._known.clear()
        self._plans.clear()


def _plan_of(tree: JobTree, chosen: list[Fragment]) -> Plan:
    nodes = sorted({tree.jobs[place].node for each in chosen for place in each.jobs})
    return Plan(tuple(nodes), sum([each.profit for each in chosen]), sum([each.cost for each in chosen]))
