"""Homes of states: which resident has kept what of the folds that it ran."""

from __future__ import annotations

from collections.abc import Sequence

from freshet.spark.driver.jobs import Job
from freshet.spark.driver.residents.seat import Seat

Home = tuple[int, int]
"""Seat and term of a resident."""


class StateHomes:
    """Remembers where the folds of a job ran last, so that they run there again.

    A resident that has kept a state needs only its last segments. One that turns out not to have it says so, and is
    then told everything: this is a guess, and no answer depends on it.
    """

    def __init__(self) -> None:
        self._homes: dict[str, tuple[Home, ...]] = {}
        """By fold, the residents that ran the job that it was in, one for each task."""

    def first(self, job: Job, idle: Sequence[Seat], tasks: int) -> list[Seat]:
        """Idle residents for the tasks of a job: for each the one that has kept most of its states."""
        count = min(tasks, len(idle))
        homes = [known for state in job.states if len(known := self._homes.get(state.fold, ())) == count]
        left, found = list(idle), dict[int, Seat]()
        for task in range(count):
            mine = [known[task] for known in homes]
            at_home = [seat for seat in left if _home(seat) in mine]
            if at_home:
                found[task] = max(at_home, key=lambda seat: mine.count(_home(seat)))
                left.remove(found[task])
        return [found[task] if task in found else left.pop(0) for task in range(count)]

    def has_all(self, job: Job, seats: Sequence[Seat]) -> bool:
        """Whether residents have probably kept all states that they need for the tasks of a job."""
        homes = tuple(map(_home, seats))
        return bool(job.states) and all(self._homes.get(state.fold) == homes for state in job.states)

    def settle(self, job: Job, seats: Sequence[Seat]) -> None:
        """The tasks of a job run on these residents from now on. Which task runs which fold, or which parts of it,
        depends only on their number."""
        homes = tuple(map(_home, seats))
        self._homes |= dict.fromkeys([state.fold for state in job.states], homes)


def _home(seat: Seat) -> Home:
    return seat.number, seat.term
