"""Load shedding: where no strategy helps a query that must be satisfied, the excess of work is left out (MAV §4.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from freshet.engine.board import Board
from freshet.engine.protocols import QueueLog
from freshet.engine.thinning import why_not
from freshet.model import Shed
from freshet.quality.shedding import QueryLoad, Shedder, loads

_LEAST_CAPACITY: Final = 0.1
"""Share of the workers' time that is left to operators in any case, whatever steps cost besides them."""


class LoadShedding:
    """Computes the excess of work once per look, and deals it out.

    What comes in is counted since the last time. What can be done is the time of the workers, without what steps
    cost besides their operators.

    Args:
        board: The engine's.
        log: The engine's.
        shed: Thins a query.
    """

    def __init__(self, board: Board, log: QueueLog, shed: Callable[[Shed], None]) -> None:
        self._board, self._log, self._shed = board, log, shed
        self._shedder = Shedder()
        self._since = -math.inf
        self._ends: dict[str, int] = {}
        self._overhead = 0.0

    def look(self, now: float, violated: Mapping[str, str], least: float) -> Mapping[str, float]:
        """What queries keep from now on; those that are not named keep everything.

        Args:
            now: The time.
            violated: The queries that must be satisfied, are not, and have no better strategy; each with the reason.
            least: Seconds over which arrivals are counted, at least; before, everything stays as it is.
        """
        if now - self._since < least:
            return self._shedder.kept
        seconds, rates = now - self._since, self._rates(now)
        overhead, self._overhead = self._board.calls.total - self._overhead, self._board.calls.total
        if not math.isfinite(seconds) or not (violated or self._shedder.kept):
            return self._shedder.kept
        workers = float(self._board.workers)
        capacity = max(_LEAST_CAPACITY * workers, workers - overhead / seconds)
        before = set(self._shedder.kept)
        kept = self._shedder.look(self._queries(violated, rates), capacity)
        for name in before - kept.keys():
            if name in self._board.numbers:
                self._shed(Shed(name, 1.0, "the load has fallen"))
        for name, ratio in kept.items():
            self._shed(Shed(name, ratio, violated.get(name, "overload")))
        return kept

    def _rates(self, now: float) -> dict[int, float]:
        """Tuples per second that came in since the last look, by operator."""
        ends = {stream: self._log.end(stream) for stream in self._board.readers}
        seconds = now - self._since
        came = {stream: (end - self._ends.get(stream, end)) / seconds for stream, end in ends.items()}
        self._since, self._ends = now, ends
        return {
            operator.node.number: sum(
                came.get(edge.edge.stream, 0.0) for edge in operator.edges if edge.edge.kind != "queue"
            )
            for operator in self._board.operators
            if operator.queries
        }

    def _queries(self, violated: Mapping[str, str], rates: Mapping[int, float]) -> list[QueryLoad]:
        load = loads(self._board, rates)
        return [
            QueryLoad(
                name,
                load.get(number, 0.0),
                thin=why_not(self._board, state) is None,
                violated=name in violated,
                weight=state.promises.weight,
                quality=state.promises.quality,
            )
            for name, number in self._board.numbers.items()
            if (state := self._board.queries[number]).active
        ]
