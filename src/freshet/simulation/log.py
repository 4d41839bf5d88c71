"""A log that holds only arrival times: what a scheduler sees of a stream."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.engine import Clock
from freshet.engine.binding import MadeUp
from freshet.log.kinds import ReaderKind
from freshet.log.marks import Marks
from freshet.model import Commit, Instance, Missing, Start, Train, UserError

Floats = NDArray[np.float64]


class Tuples(NamedTuple):
    """Tuples of a simulated stream.

    Args:
        arrivals: When they arrived.
        origins: The offsets in the source stream that they come from.
        expiries: When they expire; infinity: never.
    """

    arrivals: Floats
    origins: NDArray[np.int64]
    expiries: Floats

    def at(self, places: NDArray[np.intp] | NDArray[np.bool_]) -> Tuples:
        """Some of them, by place or by a mask."""
        return Tuples(self.arrivals[places], self.origins[places], self.expiries[places])


TUPLE_BYTES: Final = 100
"""Default size of a tuple."""


def microseconds(seconds: float) -> int:
    """Event time of a moment: the event time of a simulated tuple is its arrival."""
    return math.floor(seconds * 1e6)


def expiries_of(
    streams: Mapping[str, Floats], validity: Mapping[str, float], created: Mapping[str, Floats]
) -> dict[str, Floats]:
    """When the tuples of streams expire: at the event time, or else the arrival, plus the validity of the stream
    (WU §4.3.1). Without a validity they never do.

    >>> expiries_of({"s": np.array([1.0, 2.0])}, {"s": 5.0}, {"s": np.array([0.5, 0.5])})["s"].tolist()
    [5.5, 5.5]
    """
    return {
        name: np.full(len(times), math.inf) if name not in validity else created.get(name, times) + validity[name]
        for name, times in streams.items()
    }


class _Source:
    """A stream with arrivals that are known beforehand."""

    def __init__(self, times: Floats, expiries: Floats) -> None:
        self.arrivals, self.expiries = times, expiries
        self.origins = np.arange(len(times))
        self.end = 0
        self.beat: int | None = None
        """The event time up to which nothing more can come, once everything that came is processed."""

    def watermark(self, offset: int) -> int | None:
        if offset < self.end:
            return microseconds(self.arrivals[offset])
        last = microseconds(self.arrivals[self.end - 1]) if self.end else None
        return last if self.beat is None or (last is not None and last > self.beat) else self.beat


class _Queue:
    """A stream that units append to; grows by doubling."""

    def __init__(self) -> None:
        self.arrivals = np.empty(64)
        self.origins = np.empty(64, dtype=np.int64)
        self.expiries = np.empty(64)
        self.end = 0
        self.marks = Marks()

    def extend(self, tuples: Tuples) -> None:
        end = self.end + len(tuples.arrivals)
        if end > len(self.arrivals):
            self.arrivals = np.resize(self.arrivals, 2 * end)
            self.origins = np.resize(self.origins, 2 * end)
            self.expiries = np.resize(self.expiries, 2 * end)
        self.arrivals[self.end : end] = tuples.arrivals
        self.origins[self.end : end] = tuples.origins
        self.expiries[self.end : end] = tuples.expiries
        self.end = end

    def watermark(self, offset: int) -> int | None:
        return self.marks.at(offset)


class SimulatedLog(MadeUp):
    """Streams with given arrival times (seconds, nondecreasing) and the queues that simulated units write.

    Args:
        clock: The virtual clock.
        streams: Arrival times by stream.
        sizes: Bytes of a tuple, by stream; the executor adds those behind operators.
        beats: Moments at which all streams report event time, so that windows close while nothing comes.
        quiet: Whether arrivals wake nobody, because instances of periodic queries see them at their releases.
        expiries: When tuples expire, by stream; by default never.

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

    def __init__(
        self,
        clock: Clock,
        streams: Mapping[str, Floats],
        sizes: Mapping[str, int] | None = None,
        beats: Sequence[float] = (),
        quiet: bool = False,
        expiries: Mapping[str, Floats] | None = None,
    ) -> None:
        self._clock, self._quiet = clock, quiet
        self.sizes = dict(sizes or {})
        expire = expiries_of(streams, {}, {}) | dict(expiries or {})
        self._sources = {name: _Source(times, expire[name]) for name, times in streams.items()}
        self._streams: dict[str, _Source | _Queue] = dict(self._sources)
        self._due = [(float(times[0]), name) for name, times in streams.items() if len(times)]
        heapq.heapify(self._due)
        self._beats = list(reversed(beats))
        self._written: dict[str, None] = {}
        self._staged: dict[str, Sequence[Tuples]] = {}
        self._cursors: dict[str, int] = {}
        self._releases: dict[str, int] = {}
        self._released: float | None = None
        self.instances: list[Instance] = []
        """What became of instances of periodic queries."""

    def start_reader(self, reader: str, stream: str, at: Start, kind: ReaderKind = "operator", owner: str = "") -> int:
        self._streams.setdefault(stream, _Queue())
        return self._cursors.setdefault(reader, 0 if at == "earliest" else self._streams[stream].end)

    def named(self, prefix: str) -> set[str]:
        return {name for name in self._streams if name.startswith(prefix)}

    def park(self, readers: Sequence[str]) -> None:
        """Nothing to do: cursors stay where they are, and simulated streams are kept whole."""

    def set_need(self, reader: str, needed: bool) -> None:
        """Nothing to do: simulated streams are kept whole."""

    def grown(self) -> Sequence[str]:
        now = self._clock.now()
        while self._due and self._due[0][0] <= now:
            _, name = heapq.heappop(self._due)
            source = self._sources[name]
            source.end = int(np.searchsorted(source.arrivals, now, side="right"))
            if source.end < len(source.arrivals):
                heapq.heappush(self._due, (float(source.arrivals[source.end]), name))
            self._written[name] = None
        while self._beats and self._beats[-1] <= now:
            beat = microseconds(self._beats.pop())
            for name, source in self._sources.items():
                source.beat = beat
                self._written[name] = None
        grown = list(self._written)
        self._written.clear()
        return grown

    def next_arrival(self) -> float | None:
        """When the next tuple comes, or tells how far event time is."""
        arrivals = () if self._quiet else self._due[:1]
        return min([*(due for due, _ in arrivals), *self._beats[-1:]], default=None)

    def end(self, stream: str) -> int:
        return self._streams[stream].end

    def key_mark(self, stream: str, offset: int, join: str = "") -> int | None:
        """Simulated tuples have no columns, and so no ordered key."""
        return None

    def past(self, stream: str, first: int, end: int) -> tuple[int, ...]:
        return ()

    def let_go(self, stream: str, first: int, end: int, join: str) -> tuple[int, ...]:
        return ()

    def place(self, stream: str, offset: int) -> int | None:
        return None

    def marked(self, stream: str, first: int, end: int) -> int:
        return end

    def watermark(self, stream: str, offset: int) -> int | None:
        """How far event time has come at an offset: that of the tuple there, of the last tuple, or of a later beat."""
        return self._streams[stream].watermark(offset)

    def arrival(self, stream: str, offset: int) -> float:
        return float(self._streams[stream].arrivals[offset])

    def expiry(self, stream: str, offset: int) -> float:
        return float(self._streams[stream].expiries[offset])

    def size(self, stream: str) -> int:
        """Bytes of a tuple."""
        return self.sizes.get(stream, TUPLE_BYTES)

    def bytes(self, stream: str, first: int, end: int) -> int:
        return self.size(stream) * (end - first)

    def held(self) -> Mapping[str, str]:
        """Simulated streams take everything."""
        return {}

    def tuples(self, train: Train) -> Tuples:
        """What a train holds."""
        stream, places = self._streams[train.stream], slice(train.first, train.end)
        return Tuples(stream.arrivals[places], stream.origins[places], stream.expiries[places])

    def stage(self, file: str, members: Sequence[Tuples]) -> None:
        """Keeps what a unit writes until the commit of its file."""
        self._staged[file] = members

    def commit(self, commits: Sequence[Commit]) -> None:
        """Moves cursors and puts the staged tuples into their queues."""
        for commit in commits:
            for reader, _, first, end in commit.cursors:
                if self._cursors[reader] != first:
                    raise UserError(f"reader {reader} is at {self._cursors[reader]}, not at {first}")
                self._cursors[reader] = end
            for file in commit.files:
                staged = self._staged.pop(file.name)
                for stream, _, place, *_ in file.members:
                    self._queue(stream).extend(staged[place])
            self.instances += commit.instances
            for stream, time in commit.watermarks:
                queue = self._queue(stream)
                queue.marks.add(queue.end, time)

    def wall(self) -> int:
        return round(self._clock.now() * 1e6)

    def release_due(self, release: int) -> float | None:
        """Releases end with the first one at or after the last arrival."""
        if self._released is not None and self._released >= self.last_arrival:
            return None
        return release / 1e6

    @property
    def last_arrival(self) -> float:
        """When the last tuple of all sources comes."""
        return max((float(each.arrivals[-1]) for each in self._sources.values() if len(each.arrivals)), default=0.0)

    def first_at(self, stream: str, time: int, since: int) -> int:
        known = self._streams[stream]
        late = np.flatnonzero(known.arrivals[since : known.end] >= time / 1e6)
        return since + int(late[0]) if len(late) else max(since, known.end)

    def held_from(self, stream: str, first: int) -> int:
        """Everything: a simulated stream has no bound."""
        return first

    def lost(self, query: str) -> Sequence[Missing]:
        """Nothing."""
        return ()

    def release(
        self, upto: Mapping[str, int], made: Callable[[], Sequence[Instance]], missed: Sequence[Missing]
    ) -> Sequence[Instance]:
        found = made()
        self._releases.update(upto)
        if found:
            self._released = max(each.release for each in found) / 1e6
        return found

    def last_release(self, query: str) -> int | None:
        return self._releases.get(query)

    def waiting_instances(self, query: str) -> Sequence[Instance]:
        """None: the engine knows all of them."""
        return ()

    def answered_instances(self, query: str) -> Sequence[Instance]:
        """None: a run begins without any."""
        return ()

    def _queue(self, stream: str) -> _Queue:
        queue = self._streams.setdefault(stream, _Queue())
        assert isinstance(queue, _Queue), f"{stream} is a source"
        self._written[stream] = None
        return queue
