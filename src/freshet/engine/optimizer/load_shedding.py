"""Load shedding: where no strategy helps a query that must be satisfied, the excess of work is left out (MAV §4.3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from freshet.engine.board import Board
from freshet.engine.optimizer.thinning import why_not
from freshet.engine.protocols import QueueLog
from freshet.model import Shed
from freshet.quality.shedding import QueryLoad, Shedder, loads

_SPAN: Final = 1.0
"""Seconds over which arrivals and work are counted, at least: in less time only a few trains come and go."""
_LEAST_CAPACITY: Final = 0.1
"""Share of the workers' time that is left to operators in any case, whatever else takes time."""


class LoadSample(NamedTuple):
    """What had happened by a moment.

    Args:
        time: The moment.
        ends: By stream, the number of tuples that had come.
        lost: Seconds of workers that operators had not got although something waited.
    """

    time: float
    ends: Mapping[str, int]
    lost: float


class LoadShedding:
    """Computes the excess of work once per look, and deals it out.

    What comes in is counted over the last second, or since the last look if that is longer. What can be done is the
    time of the workers without what is lost while something waits: the overhead of steps, the time of decisions and
    commits between them, and workers that cannot help because all operators with tuples run already.

    Args:
        board: The engine's.
        log: The engine's.
        shed: Thins a query.
    """

    def __init__(self, board: Board, log: QueueLog, shed: Callable[[Shed], None]) -> None:
        self._board, self._log, self._shed = board, log, shed
        self._shedder = Shedder()
        self._samples: deque[LoadSample] = deque()
        self._gaps = 0.0
        """Seconds for which workers were idle although something waited."""
        self._idle = 0
        self._told = 0.0

    def tell(self, now: float) -> None:
        """Something came, began or ended."""
        self._gaps += self._idle * max(0.0, now - self._told)
        self._told, self._idle = now, self._board.idle_workers if self._board.pending else 0

    def look(self, now: float, violated: Mapping[str, str], least: float) -> Mapping[str, float]:
        """What queries keep from now on; those that are not named keep everything.

        Args:
            now: The time.
            violated: The queries that must be satisfied, are not, and have no better strategy; each with the reason.
            least: Seconds over which arrivals are counted, at least; before, everything stays as it is.
        """
        samples = self._samples
        if samples and now - samples[-1].time < least:
            return self._shedder.kept
        samples.append(self._sample(now))
        while len(samples) > 2 and now - samples[1].time >= _SPAN:
            samples.popleft()
        if len(samples) < 2 or not (violated or self._shedder.kept):
            return self._shedder.kept
        before = set(self._shedder.kept)
        kept = self._shedder.look(self._queries(violated), self._capacity())
        self._keep_all(before - kept.keys(), "the load has fallen")
        for name, ratio in kept.items():
            self._shed(Shed(name, ratio, violated.get(name, "overload")))
        return kept

    def end(self) -> None:
        """Keeps everything again: no query is looked at any more, so nobody would see that the load has fallen."""
        before, self._shedder.kept = set(self._shedder.kept), {}
        self._keep_all(before, "no query is left to thin for")

    def _keep_all(self, names: Iterable[str], reason: str) -> None:
        for name in names:
            if name in self._board.numbers:
                self._shed(Shed(name, 1.0, reason))

    def _sample(self, now: float) -> LoadSample:
        ends = {stream: self._log.end(stream) for stream in self._board.readers}
        self.tell(now)
        return LoadSample(now, ends, self._board.calls.total + self._gaps)

    def _capacity(self) -> float:
        """Seconds of work that operators can do per second."""
        first, last, workers = self._samples[0], self._samples[-1], float(self._board.workers)
        return max(_LEAST_CAPACITY * workers, workers - (last.lost - first.lost) / (last.time - first.time))

    def _rates(self) -> dict[int, float]:
        """Tuples per second that come in, by operator."""
        first, last = self._samples[0], self._samples[-1]
        seconds = last.time - first.time
        came = {stream: (end - first.ends.get(stream, end)) / seconds for stream, end in last.ends.items()}
        return {
            operator.node.number: sum(
                came.get(edge.edge.stream, 0.0) for edge in operator.edges if edge.edge.kind != "queue"
            )
            for operator in self._board.operators
            if operator.queries
        }

    def _queries(self, violated: Mapping[str, str]) -> list[QueryLoad]:
        load = loads(self._board, self._rates())
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
