"""Homes of states: which resident has kept what of the folds that it ran."""

from __future__ import annotations

from collections.abc import Sequence

from freshet.spark.driver.jobs import Job
from freshet.spark.driver.residents.seat import Seat


class StateHomes:
    """Remembers where the folds of a job ran last, so that they run there again.

    A resident that has kept a state needs only its last segments. One that turns out not to have it says so, and is
    then told everything: this is a guess, and no answer depends on it.
    """

    def __init__(self) -> None:
        self._homes: dict[str, tuple[int, int]] = {}
        """Seat and term by fold."""

    def first(self, job: Job, idle: Sequence[Seat]) -> list[Seat]:
        """Idle residents, first those that have kept most of a job's states."""
        homes = [self._homes.get(state.fold) for state in job.states]
        return sorted(idle, key=lambda seat: -homes.count((seat.number, seat.term)))

    def has_all(self, job: Job, seat: Seat) -> bool:
        """Whether a resident has probably kept all states of a job."""
        home = (seat.number, seat.term)
        return bool(job.states) and all(self._homes.get(state.fold) == home for state in job.states)

    def settle(self, job: Job, seats: Sequence[Seat]) -> None:
        """A job runs on these residents from now on. If they are several, each has kept a part at most."""
        for state in job.states:
            if len(seats) == 1:
                self._homes[state.fold] = (seats[0].number, seats[0].term)
            else:
                self._homes.pop(state.fold, None)
