"""A log of arrival times only: what a scheduler sees of a stream."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

import numpy as np

from freshet.engine import Clock
from freshet.log.kinds import ReaderKind
from freshet.model import Commit, Start, Train, UserError

Tuples = tuple[np.ndarray, np.ndarray]
"""Arrival times, and the offsets in the source stream that the tuples come from."""


class _Source:
    """A stream whose arrivals are known beforehand."""

    def __init__(self, times: np.ndarray) -> None:
        self.arrivals = times
        self.origins = np.arange(len(times))
        self.end = 0


class _Queue:
    """A stream that steps append to; grows by doubling."""

    def __init__(self) -> None:
        self.arrivals = np.empty(64)
        self.origins = np.empty(64, dtype=np.int64)
        self.end = 0

    def extend(self, tuples: Tuples) -> None:
        arrivals, origins = tuples
        end = self.end + len(arrivals)
        if end > len(self.arrivals):
            self.arrivals = np.resize(self.arrivals, 2 * end)
            self.origins = np.resize(self.origins, 2 * end)
        self.arrivals[self.end : end] = arrivals
        self.origins[self.end : end] = origins
        self.end = end


class SimulatedLog:
    """Streams with given arrival times (seconds, nondecreasing) and the queues that simulated steps write.

    >>> from freshet.engine import VirtualClock
    >>> clock = VirtualClock()
    >>> log = SimulatedLog(clock, {"s": np.array([1.0, 2.0, 2.0])})
    >>> log.next_arrival()
    1.0
    >>> clock.wait(2.0)
    True
    >>> log.grown(), log.end("s"), log.next_arrival()
    (['s'], 3, None)
    """

    epoch = 1
    commits = 0

    def __init__(self, clock: Clock, streams: Mapping[str, np.ndarray], tuple_bytes: int = 100) -> None:
        self._clock = clock
        self._tuple_bytes = tuple_bytes
        self._streams: dict[str, _Source | _Queue] = {name: _Source(times) for name, times in streams.items()}
        self._due = [(float(times[0]), name) for name, times in streams.items() if len(times)]
        heapq.heapify(self._due)
        self._written: dict[str, None] = {}
        self._staged: dict[str, list[tuple[str, Tuples]]] = {}
        self._cursors: dict[str, int] = {}

    def start_reader(self, reader: str, stream: str, at: Start, kind: ReaderKind = "operator", owner: str = "") -> int:
        """The reader's cursor."""
        self._streams.setdefault(stream, _Queue())
        return self._cursors.setdefault(reader, 0 if at == "earliest" else self._streams[stream].end)

    def park(self, readers: Sequence[str]) -> None:
        """Nothing to do: cursors stay where they are, and simulated streams are kept whole."""

    def set_need(self, reader: str, needed: bool) -> None:
        """Nothing to do: simulated streams are kept whole."""

    def grown(self) -> Sequence[str]:
        """Streams that got tuples since the last call."""
        now = self._clock.now()
        while self._due and self._due[0][0] <= now:
            _, name = heapq.heappop(self._due)
            source = self._streams[name]
            source.end = int(np.searchsorted(source.arrivals, now, side="right"))
            if source.end < len(source.arrivals):
                heapq.heappush(self._due, (float(source.arrivals[source.end]), name))
            self._written[name] = None
        grown = list(self._written)
        self._written.clear()
        return grown

    def next_arrival(self) -> float | None:
        """When the next tuple comes."""
        return self._due[0][0] if self._due else None

    def end(self, stream: str) -> int:
        """The offset after the newest tuple."""
        return self._streams[stream].end

    def watermark(self, stream: str, offset: int) -> int | None:
        """Simulated tuples have no event time."""
        return None

    def arrival(self, stream: str, offset: int) -> float:
        """When the tuple at an offset arrived."""
        return float(self._streams[stream].arrivals[offset])

    def bytes(self, stream: str, first: int, end: int) -> int:
        """Size of a range."""
        return self._tuple_bytes * (end - first)

    def train(self, stream: str, first: int, end: int) -> Train:
        """The range as a train."""
        return Train(stream, first, end)

    def versions(self, table: str) -> Train:
        """Nothing is looked up in simulated time."""
        return Train(table, 0, 0)

    def held(self) -> Mapping[str, str]:
        """Simulated streams take everything."""
        return {}

    def tuples(self, train: Train) -> Tuples:
        """Arrivals and origins of a train."""
        stream = self._streams[train.stream]
        return stream.arrivals[train.first : train.end], stream.origins[train.first : train.end]

    def stage(self, file: str, stream: str, tuples: Tuples) -> None:
        """Keeps what a unit writes until the commit of its file."""
        self._staged.setdefault(file, []).append((stream, tuples))

    def commit(self, commits: Sequence[Commit]) -> None:
        """Moves cursors and lets the staged tuples into their queues."""
        for commit in commits:
            for reader, _, first, end in commit.cursors:
                if self._cursors[reader] != first:
                    raise UserError(f"reader {reader} is at {self._cursors[reader]}, not at {first}")
                self._cursors[reader] = end
            for file in commit.files:
                kept = {member[0] for member in file.members}
                for stream, tuples in self._staged.pop(file.name):
                    if stream in kept:
                        self._append(stream, tuples)

    def _append(self, stream: str, tuples: Tuples) -> None:
        queue = self._streams.setdefault(stream, _Queue())
        assert isinstance(queue, _Queue), f"{stream} is a source"
        queue.extend(tuples)
        self._written[stream] = None
