"""The base of the strategies that run a path, or a part of one, before all others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from freshet.model import NOTHING, Decision, Step, View
from freshet.policies.aurora.calendar_queue import CalendarQueue
from freshet.policies.mavstream.rest_paths import RestPaths
from freshet.policies.pace import Pace
from freshet.policies.tracking import TrackingPolicy

ROWS: Final = 10_000
"""Tuples of a train, unless another number is given: some ten milliseconds of work on Spark."""


class Scored(NamedTuple):
    """Operators that run as one, and what speaks for them."""

    nodes: tuple[int, ...]
    score: float
    decision: Decision


class PathPolicy(TrackingPolicy):
    """Runs the operators of the highest score from a queue on, until that queue is empty or a better one gets tuples
    (MAV §3.1; what is printed as "or there exists" a better one ends a run, too).

    Each queue with tuples is the base of a path, or of a part of one. Scores do not depend on how many tuples wait. So
    a decision looks only at the best queue, and scores are worked out again at a :class:`~freshet.policies.pace.Pace`.

    Args:
        rows: Tuples to take from a queue at once. A better path waits at most for such a train.
    """

    def __init__(self, rows: int = ROWS) -> None:
        super().__init__(rows)
        self.queue = CalendarQueue()
        self.paths = RestPaths()
        self._known: dict[int, Scored] = {}
        self._pace = Pace()
        self._current = -1
        self._outdated = False

    @abstractmethod
    def best(self, view: View, number: int) -> tuple[tuple[int, ...], float]:
        """The operators to run from an operator's queue on, each after the one that it reads, and their score."""

    def scored(self, view: View, number: int) -> Scored:
        """What would run from an operator's queue on."""
        known = self._known.get(number)
        return self._score(view, number) if known is None else known

    def _score(self, view: View, number: int) -> Scored:
        nodes, score = self.best(view, number)
        return Scored(nodes, score, Decision.run(Step(nodes, self.rows)))

    def enter(self, view: View, number: int) -> None:
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = self._score(view, number)
        self.queue.put(number, known.score)

    def leave(self, number: int) -> None:
        self._known.pop(number, None)
        self.queue.remove(number)

    def completed(self, view: View, operators: Iterable[int]) -> None:
        """These operators ran: their queues may still have tuples, and their costs have changed a little."""
        self.arrived(view, operators)
        if self._pace.is_due(1, len(self._known)):
            self._outdated = True

    def changed(self, view: View, query: int) -> None:
        """A query changed: all paths and scores are worked out again with the next decision."""
        self._outdated = True

    def choose(self, view: View) -> Decision:
        """The best that has tuples; what runs goes on as long as nothing is better."""
        if self._outdated:
            self._rank(view)
        queue, ready, current = self.queue, view.ready, self._current
        while (best := queue.best()) is not None:
            number, score = best
            if number in ready:
                if current in ready and current in queue and self._known[current].score >= score:
                    number = current
                self._current = number
                return self._known[number].decision
            queue.remove(number)
        return NOTHING

    def _rank(self, view: View) -> None:
        self._outdated = False
        self.paths.forget()
        self._known.clear()
        self.queue = CalendarQueue()
        for number in view.ready:
            self.enter(view, number)

    def order(self, view: View) -> Iterator[int]:
        """The operators whose queues come next, best first."""
        return (number for number, _ in self.queue)
