"""The strategy that fits what waits (WU §4.11): by laxity while everything can be in time, else by profit."""

from __future__ import annotations

import math
from typing import ClassVar, Final

from freshet.model import Action, View
from freshet.policies.aurora.rest_costs import RestCosts
from freshet.policies.aurora.trains import Trains
from freshet.policies.tuples.base import Current
from freshet.policies.tuples.deadline_aware import LastDitchPolicy
from freshet.policies.tuples.plan import FragmentPlanner, JobPlanner
from freshet.policies.tuples.queued_jobs import TupleJob
from freshet.policies.tuples.worth import AnswerWorth

_FULL: Final = 0.2
"""From this share of the time left on, work that waits is taken as more than can be in time."""
_FREE: Final = 0.1
"""Below this share it can be in time again."""
_LOOK_EVERY: Final = 16
"""Decisions between two looks at all queues."""
FACTORS: Final = {"laxity": 1.3, "profit": 0.65}
"""The factors of the last ditch (WU §4.9.2.1)."""


class TupleAuto(LastDitchPolicy):
    """Runs fragments by least laxity as long as all that waits can be in time, and by most profit per second otherwise.

    By laxity, everything is in time if that is possible at all. But as soon as it is not, the time goes to what is just
    about to be late, whatever it is worth. So it compares the work that waits with the time that is left for it.

    >>> from freshet.model import Promises
    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(now=1.0)
    >>> for name, cost, weight, expiry in (("dear", 0.25, 1.0, 9.0), ("urgent", 0.25, 0.5, 5.0)):
    ...     (operator,) = view.add(name, [(cost, 1.0)], Promises(weight=weight))
    ...     view.operators[operator].pending, view.operators[operator].expiries = 1, [expiry]
    ...     view.ready[operator] = None
    >>> policy = TupleAuto(); policy.arrived(view, [0, 1])
    >>> policy.decide(view).steps[0].nodes, policy.goes_by
    ((1,), 'laxity')
    >>> for operator in view.operators:
    ...     operator.pending, operator.expiries = 9, operator.expiries * 9
    >>> busy = TupleAuto(); busy.arrived(view, [0, 1])
    >>> busy.decide(view).steps[0].nodes, busy.goes_by
    ((0,), 'profit')
    """

    name: ClassVar[str] = "tuple-auto"
    rule = "least laxity if all can be in time, else most profit per second"

    def __init__(
        self,
        *,
        trains: Trains | None = None,
        worth: AnswerWorth | None = None,
        restart: float | None = None,
    ) -> None:
        super().__init__(FACTORS["laxity"], trains=trains, worth=worth, restart=restart)
        self.goes_by = "laxity"
        """What it goes by now."""
        self._rest = RestCosts(self.through)
        self._until_look = 0

    def make_planner(self) -> JobPlanner:
        return FragmentPlanner()

    def key(self, job: TupleJob) -> tuple[float, ...]:
        return (job.latest, -job.density) if self.goes_by == "laxity" else (-job.density, job.latest)

    def is_better(self, view: View, job: TupleJob, current: Current) -> bool:
        if self.goes_by == "laxity":
            return job.latest - view.now < current.laxity
        return job.density > current.job.density

    def changed(self, view: View, query: int) -> None:
        """A query changed: everything is worked out again."""
        super().changed(view, query)
        self._rest.forget()

    def form_new(self, view: View) -> list[Action]:
        self._until_look -= 1
        if self._until_look < 0:
            self._until_look = _LOOK_EVERY
            self._look(view)
        return super().form_new(view)

    def _look(self, view: View) -> None:
        """Compares what waits with the time that is left for it."""
        load = self._fullness(view)
        goes_by = "laxity" if load < (_FREE if self.goes_by == "profit" else _FULL) else "profit"
        if goes_by != self.goes_by:
            self.goes_by, self.u = goes_by, FACTORS[goes_by]
            self.reform(view)

    def _fullness(self, view: View) -> float:
        """The seconds of work that wait, over the mean of the seconds until the newest of them expire."""
        self._looks += 2 * len(view.ready)
        self._rest.ran()
        work, weighted = 0.0, 0.0
        for number in view.ready:
            queue = view.operators[number]
            rest = queue.expiry(queue.pending - 1) - view.now
            if 0.0 < rest < math.inf:
                seconds = queue.pending * self._rest.of(view, number)
                work += seconds
                weighted += seconds * rest
        return work * work / weighted if weighted else 0.0


POLICIES: Final = (TupleAuto,)
