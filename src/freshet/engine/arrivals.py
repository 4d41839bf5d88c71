"""Arrivals: what comes into the queues, what event time brings about, and which outputs take nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from freshet.engine.board import Board
from freshet.engine.clock import Clock
from freshet.engine.events import Arrived, Event, Held, Observer
from freshet.engine.protocols import QueueLog
from freshet.engine.states import EdgeState
from freshet.engine.timekeeper import Timekeeper
from freshet.log.errors import LogFull
from freshet.policies import Policy

LOOK_AGAIN: Final = 0.1
"""Seconds after which outputs that were held back, and policies that declined to run anything, are asked again."""
LEARN_AGAIN: Final = 5.0
"""Seconds after which what was promised to shared work is worked out again from the costs that were learned."""


class Arrivals:
    """Brings the board up to date with the log.

    Args:
        log: Where tuples wait.
        clock: Real or virtual.
        policy: Is told what changed.
        board: What waits where.
        observers: Are told what happens.
    """

    def __init__(
        self, log: QueueLog, clock: Clock, policy: Policy, board: Board, observers: Iterable[Observer]
    ) -> None:
        self.log, self.clock, self.policy, self.board = log, clock, policy, board
        self.time = Timekeeper(board, log)
        self.observers = list(observers)
        self._held: Mapping[str, str] = {}
        self._look_again = -math.inf
        self._tell_again = -math.inf
        self._learn_again = -math.inf

    def _tell(self, event: Event) -> None:
        for observer in self.observers:
            observer.tell(event)

    def _take_arrivals(self, ran: Iterable[int] = ()) -> None:
        """Takes in what has come; event time may have gone on for its readers, and for queries that ``ran``."""
        self.board.now = self.clock.now()
        self._take_in(ran)
        while self._tell_time():
            self._take_in()
        if self.board.now >= self._look_again:
            self._look_again = self.board.now + LOOK_AGAIN
            self._look_at_outputs()
        if self.board.now >= self._learn_again:
            self._learn_again = self.board.now + LEARN_AGAIN
            for query in self.board.learn():
                self.policy.changed(self.board, query)

    def _take_in(self, ran: Iterable[int] = ()) -> None:
        grown = self.log.grown()
        for stream in grown:
            self._enqueue(stream)
        # Only now is every committed tuple in the queue that it waits in.
        self._look_at_time(ran, grown)

    def _enqueue(self, stream: str) -> None:
        end = self.log.end(stream)
        grown = [edge for edge in self.board.readers.get(stream, ()) if edge.end < end]
        if grown:
            last = self.log.arrival(stream, end - 1)
            for edge in grown:
                self._add_waiting(edge, end - edge.end, last)
            came = tuple(dict.fromkeys(edge.edge.node for edge in grown))
            self.policy.arrived(self.board, came)
            self._tell(Arrived(self.board.now, stream, end, came))

    def _add_waiting(self, edge: EdgeState, rows: int, last_arrival: float) -> None:
        if not edge.waiting:
            edge.head_arrival = self.log.arrival(edge.edge.stream, edge.head)
        edge.waiting += rows
        edge.tail_arrival = last_arrival
        self.board.refresh(self.board.operators[edge.edge.node])

    # Event time

    def _look_at_time(self, queries: Iterable[int], streams: Iterable[str] = ()) -> None:
        """Finds the windows that event time has passed."""
        closing = [*self.time.look(queries), *self.time.moved(streams)]
        if closing:
            self.policy.arrived(self.board, closing)

    def _tell_time(self, at_once: bool = False) -> bool:
        """Lets readers of outputs know how far event time is where no unit did; not too often, unless ``at_once``."""
        if not self.time.news or not (at_once or self.board.now >= self._tell_again):
            return False
        self._tell_again = self.board.now + LOOK_AGAIN
        try:
            self.log.commit([self.time.telling()])
        except LogFull:
            return False
        self.time.told()
        return True

    # Outputs

    def _look_at_outputs(self) -> None:
        """Holds queries back whose output takes nothing now, and whoever writes to a queue that does not; lets those go
        on that may again."""
        held = self.log.held()
        changed: dict[int, None] = {}
        for stream in {*held, *self._held}:
            changed |= dict.fromkeys(self.board.hold_back(stream, held))
            number = self.board.numbers.get(stream)
            if number is not None and self.board.queries[number].held != held.get(stream):
                self.board.hold(self.board.queries[number], held.get(stream))
                self._tell(Held(self.board.now, stream, held.get(stream)))
        for query in changed:
            self.policy.changed(self.board, query)
        self._held = dict(held)
