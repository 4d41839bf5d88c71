"""Greedy strategies: the job that earns most per second, whenever it is due (WU §4.6)."""

from __future__ import annotations

from typing import ClassVar, Final

from freshet.model import LeaveBehind, View
from freshet.policies.tuples.base import Current, TuplePolicy
from freshet.policies.tuples.fragments import published_fragments
from freshet.policies.tuples.plan import BoxPlanner, FragmentPlanner, JobPlanner
from freshet.policies.tuples.queued_jobs import TupleJob


class Basic(TuplePolicy):
    """Runs the box that earns most per second, and pre-empts for a new one that earns more (WU Alg. 1).

    What a box earns is all that answers behind it are worth, as in Aurora. It does not ask whether tuples are still in
    time: that is the baseline.

    >>> from freshet.model import Promises
    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(now=1.0)
    >>> for name, cost, weight in (("slow", 2.0, 1.0), ("quick", 0.5, 0.5)):
    ...     (operator,) = view.add(name, [(cost, 1.0)], Promises(weight=weight))
    ...     view.operators[operator].pending, view.operators[operator].expiries = 1, [9.0]
    ...     view.ready[operator] = None
    >>> policy = Basic(); policy.arrived(view, [0, 1])
    >>> policy.decide(view).steps[0].nodes
    (1,)
    """

    name: ClassVar[str] = "basic"
    rule = "most profit per second"
    checks: ClassVar[bool] = False

    def make_planner(self) -> JobPlanner:
        return BoxPlanner()

    def key(self, job: TupleJob) -> tuple[float, ...]:
        return -job.density, job.due

    def is_better(self, view: View, job: TupleJob, current: Current) -> bool:
        return job.density > current.job.density


class OptProfit(Basic):
    """Runs the fragment of a job tree that earns most per second (WU Alg. 2-5, with the fragments of Horn).

    In a fragment, operators run together up to answers, so its profit is exact. When a batch is formed, only as many
    tuples are taken as can be done before the first expires; later it does not ask whether they are in time.
    """

    name: ClassVar[str] = "opt-profit"
    checks: ClassVar[bool] = True

    def make_planner(self) -> JobPlanner:
        return FragmentPlanner()

    def grown(self, view: View, job: TupleJob) -> TupleJob | LeaveBehind:
        found = super().grown(view, job)
        # It waited too long, which a greedy strategy does not ask.
        return self.formed(view, job.number, view.now, checks=False) if isinstance(found, LeaveBehind) else found


class OptProfitPublished(OptProfit):
    """The same with the fragments of NodeMerge as published, which are not always the best (WU Alg. 4)."""

    name: ClassVar[str] = "opt-profit-published"

    def make_planner(self) -> JobPlanner:
        return FragmentPlanner(published_fragments)


POLICIES: Final = (Basic, OptProfit, OptProfitPublished)
