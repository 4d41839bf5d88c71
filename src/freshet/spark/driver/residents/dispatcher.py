"""The dispatcher: units in the hands of residents. It runs on the engine's own thread, and never waits.

It takes a unit if all of it is compiled, and gives it back if anything goes wrong: then it runs as Spark jobs, which
find out whose fault it was. A failure counts only if a Spark job has seen it, too: what a resident has kept from
earlier units is no query's fault.
"""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from freshet.model import Unit, UnitResult
from freshet.model.scheduling.unit import components
from freshet.quality.snapshots import ResidentsSnapshot
from freshet.spark.driver.course import Course, JobCourse
from freshet.spark.driver.failures import message
from freshet.spark.driver.installation import Installation
from freshet.spark.driver.jobs import Job, Jobs, is_dealt
from freshet.spark.driver.planning import Planner, TaskLimits
from freshet.spark.driver.residents.homes import StateHomes
from freshet.spark.driver.residents.patience import Patience
from freshet.spark.driver.residents.pool import Residents
from freshet.spark.driver.residents.seat import Presence, Seat
from freshet.spark.driver.results import Outcome
from freshet.spark.driver.running import Running
from freshet.spark.worker.report import TaskReport, in_order, report_of

_LOGGER: Final = logging.getLogger(__name__)
_GIVE_UP: Final = 10.0
"""Seconds that a resident gets to give up what was cancelled."""
RESIDENT: Final = "resident"
"""The word for units that residents run."""
NO_RESIDENTS: Final[ResidentsSnapshot] = {
    "wanted": 0, "present": [], "restarts": 0, "dispatches": 0, "lost": 0, "given_back": 0, "reason": None,
}  # fmt: skip
"""The figures of an executor that has none."""


@dataclass(eq=False)
class _InHand:
    """A unit that residents run."""

    unit: Unit
    spec: str
    course: JobCourse
    job: Job
    """The one that runs now, or comes next."""
    tasks: int
    """How many tasks pay for that job."""
    queries: str
    """Names of its queries, as JSON."""
    started: float = field(default_factory=time.time)
    began: float = field(default_factory=time.perf_counter)
    parts: dict[str, float] = field(default_factory=dict)
    running: dict[int, Presence] = field(default_factory=dict)
    """Its dispatches that were not answered yet, by number, and who runs them."""
    reports: list[TaskReport] = field(default_factory=list)
    text: str = ""
    """What residents are told of the job."""
    left: list[int] = field(default_factory=list)
    """Parts of the job that wait for an idle resident."""
    sent: float = 0.0
    worked: float = 0.0
    cancelled: bool = False
    whole: bool = False
    """Whether residents are told all segments of states, even those that should have kept them."""

    @property
    def dealt(self) -> bool:
        """Whether each task gets some of the chains."""
        return is_dealt(self.job, self.tasks)

    def spend(self, part: str, seconds: float) -> None:
        self.parts[part] = self.parts.get(part, 0.0) + seconds


class Dispatcher:
    """Hands units to residents, and makes results of their answers.

    Args:
        residents: The pool.
        jobs: Makes assignments, and says how many tasks pay for a job.
        installation: The installed operators.
        limits: Beyond these work does not stay in one task.
        notes: Of what runs now.
        time_limit: Maximum seconds of a job; None: unlimited.
    """

    def __init__(
        self,
        residents: Residents,
        jobs: Jobs,
        installation: Installation,
        limits: TaskLimits,
        notes: Running,
        time_limit: float | None = None,
    ) -> None:
        self.residents = residents
        self.lost = 0
        """Dispatches that were lost with their residents, or took too long."""
        self.given_back = 0
        """Units that went the way of Spark jobs after all."""
        self._jobs, self._installation, self._limits = jobs, installation, limits
        self._notes = [notes.note(seat.name) for seat in residents.seats]
        self._patience = Patience(time_limit)
        self._homes = StateHomes()
        self._due: deque[_InHand] = deque()
        """Units whose next job waits for an idle resident."""
        self._units: dict[str, _InHand] = {}
        self._by_number: dict[int, _InHand] = {}
        self._deadlines: dict[int, float] = {}
        self._back: list[Unit] = []
        self._results: list[UnitResult] = []
        self._queries: dict[tuple[int, ...], str] = {}

    @property
    def specs(self) -> set[str]:
        """The specs that its units need."""
        return {each.spec for each in self._units.values()}

    @property
    def workers(self) -> int:
        """How many residents can work at once."""
        return min(len(self.residents.seats), self._limits.cores)

    def installed(self) -> None:
        """The network has changed: numbers may stand for other nodes."""
        self._queries.clear()

    def take(self, unit: Unit, spec: str, strict: frozenset[str]) -> bool:
        """Begins a unit, if residents can run it; returns whether that is so."""
        began = time.perf_counter()
        idle = len(self.residents.idle())
        if not idle:
            self.residents.call()
            if self._would_wait_in_vain():
                return False
        pieces = Planner(unit, self._installation, self._limits).pieces(components(unit.chains))
        if any(piece.form != "vectorised" for piece in pieces):
            return False
        course = Course(unit, pieces, self._installation, strict).jobs()
        job = next(course, None)
        if job is None or (tasks := self._jobs.tasks(job)) > len(self.residents.seats):
            return False
        mine = _InHand(unit, spec, course, job, tasks, self._names(unit), began=began)
        mine.spend("plan", time.perf_counter() - began)
        self._units[unit.id] = mine
        self._due.append(mine)
        self._start_due()
        return True

    def _would_wait_in_vain(self) -> bool:
        """Whether a unit should not wait for the next idle resident: there is none, or cores are idle."""
        return self.residents.present < max(1, self._limits.cores)

    def _names(self, unit: Unit) -> str:
        """The queries of a unit, for the note that it runs."""
        firsts = tuple([chain.nodes[0] for chain in unit.chains])
        if (known := self._queries.get(firsts)) is None:
            names = {query for first in firsts for query in self._installation.queries((first,))}
            known = self._queries[firsts] = json.dumps(sorted(names))
        return known

    def _start_due(self) -> None:
        while self._due and (idle := self.residents.idle()):
            mine = self._due[0]
            if _is_split(mine.job) and len(idle) < min(mine.tasks, self.residents.present):
                return  # its parts are worth waiting for the residents that have kept them
            seats = self._homes.first(mine.job, idle, mine.tasks)
            if not mine.left:
                self._prepare(mine, seats)
            began = time.perf_counter()
            latest = self._patience.deadline(time.time(), mine.queries, tuples_of(mine.job))
            for seat in seats[: len(mine.left)]:
                self._notes[seat.number].write(mine.queries)
                part = _next_part(mine.left, seat.number) if mine.dealt else mine.left.pop(0)
                number = self.residents.run(seat, part, mine.text)
                assert seat.presence is not None
                mine.running[number] = seat.presence
                self._by_number[number] = mine
                self._deadlines[number] = latest
            mine.sent = time.perf_counter()
            mine.spend("send", mine.sent - began)
            if not mine.left:
                self._due.popleft()

    def _prepare(self, mine: _InHand, seats: Sequence[Seat]) -> None:
        """Writes down what residents are told of the next job of a unit.

        Dealt chains always have the same parts, even if some residents are busy: who has compiled a part should not
        have to compile another one.
        """
        began = time.perf_counter()
        mine.left = list(range(mine.tasks if mine.dealt else len(seats)))
        mine.text = self._told(mine, seats)
        mine.worked = 0.0
        mine.spend("plan", time.perf_counter() - began)

    def _told(self, mine: _InHand, seats: Sequence[Seat]) -> str:
        assignment = self._jobs.assignment(mine.unit, mine.spec, mine.job, len(mine.left))
        brief = not mine.whole and self._homes.has_all(mine.job, seats)
        self._homes.settle(mine.job, seats)
        mine.whole = False
        return (assignment.brief() if brief else assignment).text()

    def poll(self) -> tuple[list[UnitResult], list[Unit]]:
        """Units that have come to an end, and those that must run as Spark jobs; does not wait."""
        self._dismiss_late()
        for number, answer in self.residents.answers():
            self._deadlines.pop(number, None)
            mine = self._by_number.pop(number, None)
            if mine is not None:
                self._take_answer(mine, mine.running.pop(number), answer)
        for seat, note in zip(self.residents.seats, self._notes, strict=True):
            if seat.presence is None or seat.presence.dispatch is None:
                note.clear()
        self._start_due()
        if self._due and not self.residents.present:
            for mine in list(self._due):
                self._give_back(mine, "no resident is there")
        results, self._results = self._results, []
        back, self._back = self._back, []
        return results, back

    def _dismiss_late(self) -> None:
        if not self._deadlines:
            return
        now = time.time()
        for number in [number for number, deadline in self._deadlines.items() if deadline <= now]:
            mine = self._by_number.get(number)
            if mine is not None and not mine.cancelled:
                self._patience.in_vain(mine.queries)
            del self._deadlines[number]
            self.residents.dismiss(number)

    def _take_answer(self, mine: _InHand, resident: Presence, answer: list[Any] | None) -> None:
        self.lost += answer is None
        if mine.cancelled:
            self._finish_cancelled(mine)
            return
        if answer is None or answer[0] not in ("done", "lacking"):
            self._give_back(mine, "its resident was lost" if answer is None else " ".join(map(str, answer)))
            return
        if answer[0] == "lacking":
            mine.whole = True
        else:
            _, seconds, report = answer
            mine.reports.append(report_of(report))
            resident.kept_bytes = mine.reports[-1].kept.bytes
            mine.worked = max(mine.worked, seconds)
        if mine.running or mine.left:
            return
        if mine.whole:
            mine.reports = []
            self._due.appendleft(mine)
        else:
            taken = time.perf_counter() - mine.sent
            self._patience.took(mine.queries, tuples_of(mine.job), taken)
            # A resident may have begun before the call that sent it the work returned.
            work = min(mine.worked, taken)
            mine.spend("work", work)
            mine.spend("report", taken - work)
            self._go_on(mine)

    def _go_on(self, mine: _InHand) -> None:
        """All parts of a job are there."""
        reports, mine.reports = in_order(mine.reports), []
        began = time.perf_counter()
        try:
            mine.job = mine.course.send(reports)
            mine.tasks = self._jobs.tasks(mine.job)
            self._due.appendleft(mine)
        except StopIteration as end:
            mine.spend("report", time.perf_counter() - began)
            self._finish(mine, end.value)
        except Exception as error:
            self._give_back(mine, message(error))

    def _finish(self, mine: _InHand, outcome: Outcome) -> None:
        failures = (each.failure for each in outcome.results.values() if each.failure is not None)
        if (failure := next(failures, None)) is not None:
            self._give_back(mine, failure)
            return
        del self._units[mine.unit.id]
        self._results.append(outcome.result(mine.unit, mine.started, mine.began, mine.parts, RESIDENT))

    def _give_back(self, mine: _InHand, why: str) -> None:
        """Gives a unit up, so that it runs as Spark jobs."""
        _LOGGER.info("unit %s goes to Spark: %s", mine.unit.id, why)
        self.given_back += 1
        self._forget(mine)
        self._back.append(mine.unit)

    def _forget(self, mine: _InHand) -> None:
        """Wants no answer for a unit any more."""
        mine.course.close()
        self._units.pop(mine.unit.id, None)
        if mine in self._due:
            self._due.remove(mine)
        self._give_up(mine.running)
        for number in mine.running:
            self._by_number.pop(number, None)

    def _give_up(self, numbers: Collection[int]) -> None:
        latest = time.time() + _GIVE_UP
        for seat in self.residents.seats:
            if seat.presence is not None and seat.presence.dispatch in numbers:
                self.residents.cancel(seat)
        for number in numbers:
            self._deadlines[number] = min(self._deadlines.get(number, latest), latest)

    def cancel(self, unit: str) -> bool:
        """Asks for a unit to be given up; returns whether residents run it."""
        mine = self._units.get(unit)
        if mine is None:
            return False
        mine.cancelled = True
        self._give_up(mine.running)
        self._finish_cancelled(mine)
        return True

    def _finish_cancelled(self, mine: _InHand) -> None:
        if not mine.running:
            self._forget(mine)
            self._results.append(UnitResult(mine.unit, mine.started, time.time(), retry="cancelled", way=RESIDENT))

    def next_look(self) -> float | None:
        """When a resident will have taken too long, or been idle for too long, in seconds since the epoch; None:
        never."""
        moments = [*self._deadlines.values(), self.residents.next_end()]
        return min((moment for moment in moments if moment is not None), default=None)

    def figures(self) -> ResidentsSnapshot:
        """What residents do, for reports."""
        pool = self.residents
        return {
            "wanted": len(pool.seats),
            "present": pool.whereabouts(),
            "restarts": pool.losses,
            "dispatches": pool.dispatches,
            "lost": self.lost,
            "given_back": self.given_back,
            "reason": pool.reason,
        }

    def close(self) -> None:
        """Ends the residents; what they run is given up and not reported."""
        self.residents.close()
        for note in self._notes:
            note.close()


def tuples_of(job: Job) -> int:
    """Tuples of the longest train of a job, and those that its states hold.

    >>> from freshet.model import Chain, State, Train
    >>> chains = Chain((0,), (Train("s", 0, 5),)), Chain((1,), (0, Train("t", 2, 4)))
    >>> tuples_of(Job("vectorised", chains, (State("q", (Train("q.state", 0, 100),), (None,), (None,)),)))
    105
    """
    trains = (each.rows for chain in job.chains for each in chain.inputs if not isinstance(each, int))
    return max(trains, default=0) + sum(each.rows for state in job.states for each in state.ranges)


def _next_part(left: list[int], seat: int) -> int:
    """Takes the part of a seat if it is left, otherwise the first one.

    >>> left = [0, 1, 2]
    >>> _next_part(left, 2), _next_part(left, 2), left
    (2, 0, [1])
    """
    return left.pop(left.index(seat) if seat in left else 0)


def _is_split(job: Job) -> bool:
    """Whether states of a job lie in parts."""
    return any(state.parts > 1 for state in job.states)
