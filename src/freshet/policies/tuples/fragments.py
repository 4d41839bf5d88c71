"""Fragments: the parts of a job tree in the order in which they earn most per second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from freshet.policies.tuples.job_tree import JobTree

LEAST_COST: Final = 1e-12
"""Seconds: a job that has cost nothing so far still has a density."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """Jobs that run as one (WU §4.6.2.2).

    Args:
        jobs: Places in the tree, each after its parent, if that is in the fragment.
        profit: What they earn, for each tuple in front of the tree.
        cost: Seconds that they take.
    """

    jobs: tuple[int, ...]
    profit: float
    cost: float

    @property
    def density(self) -> float:
        """Profit per second."""
        return self.profit / max(self.cost, LEAST_COST)


Cut = Callable[[JobTree], list[Fragment]]
"""Cuts a tree into fragments."""


class _Groups:
    """Jobs of a tree that are being merged. A group is named by its root."""

    def __init__(self, tree: JobTree) -> None:
        self.parent = {place: job.parent for place, job in enumerate(tree.jobs)}
        self.jobs = {place: [place] for place in self.parent}
        self.profit = {place: job.profit for place, job in enumerate(tree.jobs)}
        self.cost = {place: job.cost for place, job in enumerate(tree.jobs)}

    def density(self, *groups: int) -> float:
        """The profit per second of groups together."""
        cost = sum([self.cost[each] for each in groups])
        return sum([self.profit[each] for each in groups]) / max(cost, LEAST_COST)

    def merge(self, group: int) -> int:
        """Merges a group into its parent; returns the parent."""
        into = self.parent.pop(group)
        assert into is not None, "a root has no parent to be merged with"
        self.jobs[into] += self.jobs.pop(group)
        self.profit[into] += self.profit.pop(group)
        self.cost[into] += self.cost.pop(group)
        self._children_of(group, into)
        return into

    def take(self, root: int) -> Fragment:
        """Takes a root out; those below it become roots."""
        del self.parent[root]
        self._children_of(root, None)
        return Fragment(tuple(self.jobs.pop(root)), self.profit.pop(root), self.cost.pop(root))

    def _children_of(self, group: int, parent: int | None) -> None:
        for child, before in self.parent.items():
            if before == group:
                self.parent[child] = parent


def fragments(tree: JobTree) -> list[Fragment]:
    """The fragments of a tree, densest first: whatever time there is, running them in this order earns most.

    The densest job that is not a root is merged into its parent, until the densest is a root (Horn 1972, the Sidney
    decomposition of an out-tree). That takes the place of NodeMerge (WU Alg. 4), which merges the pair with the densest
    union and is not optimal, whatever Th. 4.6.1 says. With a large train only the last fragment runs for a part of the
    tuples, as in a fractional knapsack.

    >>> tree = JobTree.of([None, 0, 1, 1, 0, 4, 5, 5], [0, 0, 1, 6, 0, 0, 1, 10], [1, 1, 4, 1, 4, 3, 5, 1])
    >>> [(each.jobs, each.density) for each in fragments(tree)]
    [((0, 1, 3), 2.0), ((4, 5, 7), 1.25), ((2,), 0.25), ((6,), 0.2)]
    """
    groups = _Groups(tree)
    found: list[Fragment] = []
    while groups.parent:
        # Of equally dense ones that which is first in the tree.
        densest = max(groups.parent, key=groups.density)
        if groups.parent[densest] is None:
            found.append(groups.take(densest))
        else:
            groups.merge(densest)
    return found


def published_fragments(tree: JobTree) -> list[Fragment]:
    """The fragments by NodeMerge as published (WU Alg. 3-5): the pair with the densest union is merged, until a root is
    denser than any union. Jobs in which nothing is earned at or below come in no fragment.

    >>> tree = JobTree.of([None, 0, 1, 1, 0, 1], [0, 0, 8, 7, 9, 8], [3, 5, 6, 7, 9, 7])
    >>> [round(each(tree)[0].density, 4) for each in (published_fragments, fragments)]
    [0.75, 0.8649]
    """
    groups = _Groups(tree)
    found: list[Fragment] = []
    earning = {place for place, profit in groups.profit.items() if profit > 0.0}
    while earning:
        best = _node_merge(groups, earning)
        earning.discard(best)
        if groups.parent[best] is None:
            found.append(groups.take(best))
        else:
            earning.add(groups.merge(best))
    return found


def _node_merge(groups: _Groups, earning: set[int]) -> int:
    """The root to be taken out, or the node to be merged with its parent (WU Alg. 4)."""
    current, candidate = 0.0, -1
    for place in sorted(earning, key=lambda each: (-groups.density(each), each)):
        parent = groups.parent[place]
        if candidate >= 0 and groups.density(place) <= current:
            break
        density = groups.density(place) if parent is None else groups.density(place, parent)
        if density > current or candidate < 0:
            current, candidate = density, place
    return candidate


@dataclass(frozen=True, slots=True)
class Allotment:
    """How many tuples of a train a fragment runs for."""

    fragment: Fragment
    rows: float

    @property
    def profit(self) -> float:
        """What that earns."""
        return self.rows * self.fragment.profit


def allotted(ranked: Sequence[Fragment], rows: int, seconds: float) -> list[Allotment]:
    """How many tuples of a train each fragment runs for before the time is over (WU Alg. 3, lines 16-19).

    >>> tree = JobTree.of([None, 0, 0], [0, 6, 1], [1, 1, 4])
    >>> [(each.fragment.jobs, each.rows) for each in allotted(fragments(tree), rows=10, seconds=40.0)]
    [((0, 1), 10), ((2,), 5.0)]
    """
    found = []
    for each in ranked:
        taken = min(rows, seconds / max(each.cost, LEAST_COST))
        if taken <= 0.0:
            break
        found.append(Allotment(each, taken))
        seconds -= taken * each.cost
    return found
