"""Job trees: the work that a tuple brings about, with what it earns, costs and is due (WU §4.4, §4.6.2.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from freshet.model import View


@dataclass(frozen=True, slots=True)
class TreeJob:
    """What an operator does for one tuple in front of the tree.

    Args:
        node: The operator.
        parent: Place in the tree of the job whose output it takes; None: it is the root.
        profit: What the answers are worth that it gives out.
        cost: Seconds: the measured cost per tuple, times the number of tuples that reach the operator (WU §4.4.1).
    """

    node: int
    parent: int | None
    profit: float
    cost: float


@dataclass(frozen=True, slots=True)
class JobTree:
    """The jobs of a tuple, or of each tuple of a train, each after its parent. The root is first.

    A job that is left out takes all jobs below it with it. What answers are worth is earned where they come out. A job
    that gives out none earns nothing itself.

    >>> tree = JobTree.of([None, 0, 0], profits=[0.0, 4.0, 6.0], costs=[1.0, 2.0, 3.0])
    >>> tree.below, tree.due(0, 100.0), tree.due(2, 100.0)
    ((5.0, 0.0, 0.0), 95.0, 100.0)
    """

    jobs: tuple[TreeJob, ...]

    @classmethod
    def of(cls, parents: Sequence[int | None], profits: Sequence[float], costs: Sequence[float]) -> JobTree:
        """A tree of given jobs, whose operators are numbered by their places."""
        given = zip(range(len(parents)), parents, profits, costs, strict=True)
        return cls(tuple(TreeJob(node, parent, profit, cost) for node, parent, profit, cost in given))

    @property
    def below(self) -> tuple[float, ...]:
        """The cost of all jobs below each job."""
        seconds = [0.0] * len(self.jobs)
        for place in range(len(self.jobs) - 1, 0, -1):
            parent = self.jobs[place].parent
            assert parent is not None, "only the first job of a tree has no parent"
            seconds[parent] += seconds[place] + self.jobs[place].cost
        return tuple(seconds)

    def due(self, place: int, expiry: float, rows: int = 1) -> float:
        """When a job over a train must have ended so that all jobs below it can be in time, if they run one after the
        other (WU §4.7.1). Jobs on several ways below it do not run side by side, so the longest way is not enough."""
        return expiry - rows * self.below[place]


def job_tree(view: View, operator: int, worth: Mapping[int, float]) -> JobTree:
    """The jobs of a tuple that waits for an operator.

    An operator that a tuple reaches on several ways has a job for each of them: its tuples are different ones.

    Args:
        view: Knows costs and selectivities.
        operator: The operator that it waits for.
        worth: What an answer of a query is worth, by query.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView.over({0: (1, 2), 1: (), 2: ()}, {0: (1.0, 0.5), 1: (2.0, 1.0), 2: (4.0, 0.25)})
    >>> for job in job_tree(view, 0, {0: 10.0, 1: 8.0}).jobs:
    ...     print(job)
    TreeJob(node=0, parent=None, profit=0.0, cost=1.0)
    TreeJob(node=1, parent=0, profit=5.0, cost=1.0)
    TreeJob(node=2, parent=0, profit=1.0, cost=2.0)
    """
    jobs: list[TreeJob] = []
    waiting: list[tuple[int, int | None, float]] = [(operator, None, 1.0)]
    while waiting:
        number, parent, reach = waiting.pop()
        each = view.operators[number]
        goes = reach * each.selectivity
        profit = goes * sum([worth[query] for query in each.outputs])
        jobs.append(TreeJob(number, parent, profit, reach * each.cost))
        place = len(jobs) - 1
        waiting += [(reader, place, goes) for reader in reversed(each.readers)]
    return JobTree(tuple(jobs))
