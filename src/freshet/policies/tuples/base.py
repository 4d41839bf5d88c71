"""The base of tuple-based policies: which queue's head batch runs next."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from freshet.model import NOTHING, Action, Decision, LeaveBehind, Preempt, RunStep, Step, View
from freshet.policies.aurora.trains import Trains
from freshet.policies.base import Policy
from freshet.policies.pace import Pace
from freshet.policies.pushing import PushThrough
from freshet.policies.tuples.batching import IntelligentBatches
from freshet.policies.tuples.fragments import LEAST_COST
from freshet.policies.tuples.plan import JobPlanner
from freshet.policies.tuples.queued_jobs import QueuedJobs, TupleJob
from freshet.policies.tuples.worth import AnswerWorth

_HOLE_ROWS: Final = 200
"""Tuples of a step over what was left behind: such steps are short, so that the next tuple in time waits little."""
_ROUNDING: Final = 1e-9


@dataclass(slots=True)
class BatchCounts:
    """The batches that ran: how many, with how many tuples, and how long from the first to the last of each.

    >>> BatchCounts(2, 10, 3.0).mean_rows, BatchCounts().mean_seconds
    (5.0, 0.0)
    """

    count: int = 0
    rows: int = 0
    seconds: float = 0.0

    @property
    def mean_rows(self) -> float:
        """Mean number of tuples."""
        return self.rows / self.count if self.count else 0.0

    @property
    def mean_seconds(self) -> float:
        """Mean time from the first tuple to the last, by their expiries."""
        return self.seconds / self.count if self.count else 0.0


@dataclass(slots=True)
class Current:
    """The job that runs, with when it began and when it will end."""

    job: TupleJob
    begun: float
    end: float
    last_ditch: bool = False
    """Whether it could wait no longer when it began."""

    def rest_density(self, now: float) -> float:
        """What it still earns per second of its rest (WU Alg. 7, line 1). Tuples that are done have earned theirs."""
        seconds = self.job.cost / self.job.rows
        done = min(self.job.rows - 1, int((now - self.begun) / seconds)) if seconds > 0.0 else 0
        profit = self.job.profit * (self.job.rows - done) / self.job.rows
        return profit / max(self.end - now, LEAST_COST)

    @property
    def laxity(self) -> float:
        """How much earlier than due it ends."""
        return self.job.due - self.end


class TuplePolicy(Policy):
    """Runs the best job first. A job is the work on the batch at the head of a queue; it earns what the answers are
    worth that it brings out (WU §4.4). A better new job pre-empts the one that runs.

    Jobs are in time if they end before the first tuple of their batch expires, less what is below them. What cannot be
    in time is left behind, and runs when nothing else waits: nothing is lost.

    ``operations`` counts the operations of scheduling, for those who charge for them: a look at an operator, a queue or
    a tuple, or one comparison.

    Args:
        trains: Which of the waiting tuples are one batch.
        worth: What answers are worth.
    """

    preempts: ClassVar[bool] = True
    watches: ClassVar[bool] = False
    """Whether it looks at jobs that must begin now or never (WU Alg. 7)."""
    checks: ClassVar[bool] = True
    """Whether it leaves behind what cannot be in time when a batch is formed."""

    def __init__(self, *, trains: Trains | None = None, worth: AnswerWorth | None = None) -> None:
        self.trains: Trains = trains or IntelligentBatches()
        self.worth = worth or AnswerWorth()
        self.planner = self.make_planner()
        self.through = PushThrough()
        self.jobs = QueuedJobs(self.watches)
        self.current: Current | None = None
        self.batches = BatchCounts()
        self._new: dict[int, float] = {}
        """Operators without a job, each with the time from which on it could run."""
        self._left: dict[int, None] = {}
        """Operators in front of which tuples were left behind."""
        self._version = -1
        self._pace = Pace()
        self._forced: int | None = None
        self._looks = 0

    @abstractmethod
    def make_planner(self) -> JobPlanner:
        """What says which operators run for a batch."""

    @abstractmethod
    def key(self, job: TupleJob) -> tuple[float, ...]:
        """Jobs with a lesser key run first."""

    @abstractmethod
    def is_better(self, view: View, job: TupleJob, current: Current) -> bool:
        """Whether a waiting job pre-empts the one that runs."""

    def must_give_way(self, view: View, job: TupleJob, current: Current) -> bool:
        """Whether the job that runs gives way to one that must begin now or never (WU Alg. 7)."""
        return False

    @property
    def operations(self) -> int:
        """Operations so far."""
        counted = (self.planner, self.jobs, self.worth, self.trains)
        return self._looks + sum([getattr(each, "operations", 0) for each in counted])

    # Notices

    def arrived(self, view: View, operators: Iterable[int]) -> None:
        """Tuples came: queues without a job get one."""
        ready, known, new = view.ready, self.jobs.known, self._new
        for number in operators:
            if number not in known and number in ready:
                new.setdefault(number, -math.inf)

    def completed(self, view: View, operators: Iterable[int]) -> None:
        """A unit ended: what it has left in its queues is a new job."""
        self.current = None
        # Whatever waited for its end can run now.
        self._new = dict.fromkeys(self._new, -math.inf)
        for number in operators:
            self.jobs.remove(number)
            if number in view.ready:
                self._new.setdefault(number, -math.inf)
        if self._pace.is_due(1, len(self.jobs)):
            self._version = -1

    def changed(self, view: View, query: int) -> None:
        """A query changed: everything is worked out again."""
        self.through.forget()
        self.worth.forget()
        self._version = -1
        self._left = {number: None for number in self._left if number < len(view.operators)}

    # Decisions

    def decide(self, view: View) -> Decision:
        """The best job; if there is none, what was left behind."""
        self.current, forced = None, self._forced
        actions = self.form_new(view)
        job = self._choose(view, actions)
        if job is not None:
            self.current = self._begin(view, job, last_ditch=job.number == forced)
            if self.watches:
                actions += self._last_ditches(view)
            actions.append(RunStep(Step(self.current.job.nodes, self.current.job.rows)))
            self._count(view, self.current.job)
        elif not actions:
            return self._run_holes(view)
        return Decision(tuple(actions), self._alarm(view))

    def _count(self, view: View, job: TupleJob) -> None:
        queue, counts = view.operators[job.number], self.batches
        counts.count += 1
        counts.rows += job.rows
        if job.due < math.inf:
            counts.seconds += max(0.0, queue.expiry(job.rows - 1) - queue.expiry())

    def _choose(self, view: View, actions: list[Action]) -> TupleJob | None:
        """The job to run, with what has come to its queue; adds what is left behind on the way to it."""
        while (job := self._next(view)) is not None:
            found = self.grown(view, job)
            if isinstance(found, TupleJob):
                return found
            self.jobs.remove(job.number)
            self._new[job.number] = -math.inf
            self._left.setdefault(job.number)
            actions.append(found)
        return None

    def _begin(self, view: View, job: TupleJob, *, last_ditch: bool = False) -> Current:
        self.jobs.remove(job.number)
        return Current(job, view.now, view.now + job.cost + view.overhead(job.nodes), last_ditch)

    def _last_ditches(self, view: View) -> list[Action]:
        """Before a job begins: another that must begin now may take its place."""
        actions: list[Action] = []
        while self.current is not None and (job := self._at_its_last(view)) is not None:
            if not self.current.last_ditch and self.must_give_way(view, job, self.current):
                before = self.current.job
                self.current = self._begin(view, job, last_ditch=True)
                self.jobs.put(before, self.key(before))
            else:
                actions += self._give_up(view, job, self.current)
        return actions

    def _at_its_last(self, view: View) -> TupleJob | None:
        """A job that must begin now."""
        job = self.jobs.most_urgent()
        self._looks += 1
        return job if job is not None and job.latest <= view.now + _ROUNDING else None

    def running(self, view: View) -> Decision:
        """Ends what runs if a new job is better, or if one that must begin now is worth it."""
        had, current = bool(self._new), self.current
        actions = self.form_new(view)
        best = self.jobs.best() if had else None
        self._looks += 1
        if best is not None and best.number in view.ready and self._gives_way(view, best):
            return Decision((*actions, Preempt()))
        while self.watches and (job := self._at_its_last(view)) is not None:
            if current is None or self.must_give_way(view, job, current):
                self._forced = job.number
                return Decision((*actions, Preempt()))
            actions += self._give_up(view, job, current)
        return Decision(tuple(actions), self._alarm(view))

    def _gives_way(self, view: View, job: TupleJob) -> bool:
        """Whether what runs gives way to a better job. One that could wait no longer does not: it would be late."""
        current = self.current
        return current is None or (not current.last_ditch and self.is_better(view, job, current))

    def _give_up(self, view: View, job: TupleJob, current: Current) -> Iterator[Action]:
        """Leaves those tuples of a job behind that cannot wait for the end of what runs."""
        self.jobs.remove(job.number)
        self._new[job.number] = current.end
        plan = self.planner.plan(view, job.number, self.worth.of(view), job.rows)
        before = current.end + plan.cost + plan.below
        if view.operators[job.number].expiry() < before:
            self._left.setdefault(job.number)
            yield LeaveBehind(job.number, before)

    def _alarm(self, view: View) -> float | None:
        """When the next job must begin."""
        job = self.jobs.most_urgent() if self.watches else None
        return None if job is None else max(view.now, job.latest)

    # Jobs

    def form_new(self, view: View) -> list[Action]:
        """Forms the jobs of queues that have none; returns what is left behind by that."""
        self._work_out(view)
        actions: list[Action] = []
        for number, since in list(self._new.items()):
            if number not in view.ready:
                del self._new[number]
                continue
            self._looks += 1
            found = self.formed(view, number, max(view.now, since), checks=self.checks)
            if isinstance(found, LeaveBehind):
                # The rest of the queue is looked at when these are out of it.
                self._left.setdefault(number)
                actions.append(found)
            else:
                del self._new[number]
                self.jobs.put(found, self.key(found))
        return actions

    def _work_out(self, view: View) -> None:
        """Plans anew if answers are worth something else now, or costs may have changed."""
        self.worth.of(view)
        if self._version != self.worth.version:
            self._version = self.worth.version
            self._pace.restart()
            self.planner.forget()
            self.reform(view)

    def reform(self, view: View) -> None:
        """Forms all jobs anew, because they are ranked otherwise now."""
        self.jobs.clear()
        self._new = {number: self._new.get(number, -math.inf) for number in view.ready}

    def formed(self, view: View, number: int, at: float, *, checks: bool) -> TupleJob | LeaveBehind:
        """The job of the batch at the head of a queue, if it could begin at a time. If it ``checks``, the batch is so
        short that all of it can be in time; what cannot be at all is to be left behind."""
        queue, worth = view.operators[number], self.worth.of(view)
        rows = self._batch(view, number)
        plan = self.planner.plan(view, number, worth, rows)
        each, expiry = plan.cost + plan.below, queue.expiry()
        if checks and expiry < math.inf:
            if expiry < at + each - _ROUNDING:
                return LeaveBehind(number, at + each - _ROUNDING)
            rows = min(rows, max(1, int((expiry - at) / max(each, LEAST_COST) + _ROUNDING)))
        return TupleJob(number, plan.nodes, rows, rows * plan.profit, rows * plan.cost, expiry - rows * plan.below)

    def _batch(self, view: View, number: int) -> int:
        rows, pending = self.trains.rows(view, number), view.operators[number].pending
        return pending if rows is None else min(rows, pending)

    def _next(self, view: View) -> TupleJob | None:
        """The job to run: one that has just won its last ditch, or the best."""
        forced, self._forced = self._forced, None
        if forced is not None and forced in view.ready and forced in self.jobs.known:
            return self.jobs.known[forced]
        while (job := self.jobs.best()) is not None and job.number not in view.ready:
            # It runs or is held; a notice will bring it back.
            self.jobs.remove(job.number)
        return job

    def grown(self, view: View, job: TupleJob) -> TupleJob | LeaveBehind:
        """The job with what has come to its queue since it was formed; or what it comes too late for."""
        if view.operators[job.number].pending == job.rows and (not self.watches or job.latest >= view.now - _ROUNDING):
            return job
        return self.formed(view, job.number, view.now, checks=self.checks)

    def _run_holes(self, view: View) -> Decision:
        """What was left behind, if nothing else waits."""
        for number in list(self._left):
            if view.operators[number].left_behind:
                return Decision.run(Step(self.through.of(view, number), _HOLE_ROWS, holes=True))
            del self._left[number]
        return NOTHING

    # Reasons

    def weighs(self, view: View, operator: int) -> dict[str, float]:
        job = self.jobs.known.get(operator)
        if job is None and self.current is not None and self.current.job.number == operator:
            job = self.current.job
        known: dict[str, float] = {"waiting": view.operators[operator].pending}
        if job is not None:
            known |= {"density": job.density, "batch": job.rows, "laxity_s": job.latest - view.now}
        return known

    def order(self, view: View) -> Iterator[int]:
        """The operators by their jobs, best first."""
        return (job.number for job in self.jobs)
