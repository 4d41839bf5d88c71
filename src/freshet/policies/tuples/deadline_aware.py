"""Strategies that look at deadlines: by laxity, or by profit, with a last ditch for jobs that cannot wait (WU §4.7)."""

from __future__ import annotations

from typing import ClassVar, Final

from freshet.model import UserError, View
from freshet.policies.aurora.trains import Trains
from freshet.policies.tuples.base import Current, TuplePolicy
from freshet.policies.tuples.fragments import published_fragments
from freshet.policies.tuples.last_ditch import RunningJob, WaitingJob, gives_up
from freshet.policies.tuples.plan import BoxPlanner, FragmentPlanner, JobPlanner
from freshet.policies.tuples.queued_jobs import TupleJob
from freshet.policies.tuples.worth import AnswerWorth


class LastDitchPolicy(TuplePolicy):
    """A job that must begin now or never pre-empts the one that runs if it earns more than ``u`` times as much per
    second; else what of it cannot wait is left behind (WU Alg. 7).

    Args:
        u: The factor.
        restart: Seconds that a pre-empted job costs besides if it has to begin again, because what it did is lost. Then
            it is pre-empted only if both jobs together earn more so. None: it goes on where it was.
    """

    watches: ClassVar[bool] = True

    def __init__(
        self,
        u: float,
        *,
        trains: Trains | None = None,
        worth: AnswerWorth | None = None,
        restart: float | None = None,
    ) -> None:
        if not u > 0.0:
            raise UserError(f"{self.name}: u {u} would let every job yield to any other: use more than 0")
        super().__init__(trains=trains, worth=worth)
        self.u, self._restart = u, restart

    def must_give_way(self, view: View, job: TupleJob, current: Current) -> bool:
        if job.density <= self.u * current.rest_density(view.now):
            return False
        if self._restart is None:
            return True
        running = RunningJob(current.job.profit, current.end - current.begun, current.job.due, current.begun)
        return gives_up(running, WaitingJob(job.profit, job.cost, job.due), view.now, self._restart)


class BasicDeadlineDominant(LastDitchPolicy):
    """Runs the box with the least laxity: the one that must begin first (WU Alg. 6, 7). Others are served only if they
    earn much more when they cannot wait.

    Choose it if weights differ much. With equal weights it spends its time on what is just about to be late.

    Args:
        u: Above 1: by which factor a job must be better than the one that runs to pre-empt it.
    """

    name: ClassVar[str] = "basic-dd"
    rule = "least laxity"

    def __init__(
        self,
        u: float = 1.3,
        *,
        trains: Trains | None = None,
        worth: AnswerWorth | None = None,
        restart: float | None = None,
    ) -> None:
        super().__init__(u, trains=trains, worth=worth, restart=restart)

    def make_planner(self) -> JobPlanner:
        return BoxPlanner()

    def key(self, job: TupleJob) -> tuple[float, ...]:
        return job.latest, -job.density

    def is_better(self, view: View, job: TupleJob, current: Current) -> bool:
        return job.latest - view.now < current.laxity


class OptProfitDeadlineDominant(BasicDeadlineDominant):
    """The same with fragments in the place of boxes."""

    name: ClassVar[str] = "opt-profit-dd"

    def make_planner(self) -> JobPlanner:
        return FragmentPlanner()


class OptProfitPublishedDeadlineDominant(BasicDeadlineDominant):
    """The same with the fragments of NodeMerge as published."""

    name: ClassVar[str] = "opt-profit-published-dd"

    def make_planner(self) -> JobPlanner:
        return FragmentPlanner(published_fragments)


class BasicProfitDominant(LastDitchPolicy):
    """Runs the box that earns most per second of those that are in time (WU Alg. 8, 7). Others are served if they earn
    nearly as much and cannot wait.

    Args:
        u: Below 1: how much of the density of what runs a job must have to pre-empt it.
    """

    name: ClassVar[str] = "basic-pd"
    rule = "most profit per second in time"

    def __init__(
        self,
        u: float = 0.65,
        *,
        trains: Trains | None = None,
        worth: AnswerWorth | None = None,
        restart: float | None = None,
    ) -> None:
        super().__init__(u, trains=trains, worth=worth, restart=restart)

    def make_planner(self) -> JobPlanner:
        return BoxPlanner()

    def key(self, job: TupleJob) -> tuple[float, ...]:
        return -job.density, job.latest

    def is_better(self, view: View, job: TupleJob, current: Current) -> bool:
        return job.density > current.job.density


class OptProfitProfitDominant(BasicProfitDominant):
    """The same with fragments in the place of boxes: the best choice in most cases (WU §4.10)."""

    name: ClassVar[str] = "opt-profit-pd"

    def make_planner(self) -> JobPlanner:
        return FragmentPlanner()


class OptProfitPublishedProfitDominant(BasicProfitDominant):
    """The same with the fragments of NodeMerge as published."""

    name: ClassVar[str] = "opt-profit-published-pd"

    def make_planner(self) -> JobPlanner:
        return FragmentPlanner(published_fragments)


POLICIES: Final = (
    BasicDeadlineDominant,
    BasicProfitDominant,
    OptProfitDeadlineDominant,
    OptProfitProfitDominant,
    OptProfitPublishedDeadlineDominant,
    OptProfitPublishedProfitDominant,
)
