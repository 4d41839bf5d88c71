"""The log as the engine sees it: times in seconds, news of what grew, and intermediate queues made when needed."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from freshet.log import Lagged, Log, LogFull, Retention, kept_versions
from freshet.log.errors import NoStream
from freshet.log.kinds import ReaderKind
from freshet.model import Commit, Instance, Missing, Start, Train

QUEUE: Final = Retention(history_age=0.0, history_bytes=0)
"""Nobody reads an intermediate queue again, so it keeps no history."""
STATE: Final = Retention(history_age=0.0, history_bytes=0, bound_bytes=None)
"""A state is of use only as a whole, so no bound may cut it."""
FULL_DISK_PAUSE: Final = 0.5
"""Seconds between tries of a commit that found the disk full."""


class LogQueues:
    """A :class:`~freshet.engine.QueueLog` over a :class:`~freshet.log.Log`.

    An intermediate queue (named like the operator that reads it) comes into being with its first tuples: most
    policies fuse most paths, and 250 queries need not mean 500 empty streams.

    Args:
        look_every: Seconds between looks at which outputs have hit their bound.
    """

    def __init__(self, log: Log, look_every: float = 0.5) -> None:
        self.log, self.epoch = log, log.epoch
        self.committed: Callable[[], None] = lambda: None
        """Called after every commit."""
        self._grown: dict[str, None] = {}
        self._lock = threading.Lock()
        self._pause = look_every
        self._look_again = 0.0
        self._held: dict[str, str] = {}
        self._closed = threading.Event()
        self._coming: dict[str, tuple[ReaderKind, str]] = {}
        """Readers of queues and states that are still to come into being: what they are for, and whose they are."""

    @property
    def commits(self) -> int:
        return self.log.commits

    def notice(self, stream: str) -> None:
        """Says that a stream got tuples or a watermark. From any thread; wake the clock afterwards."""
        with self._lock:
            self._grown[stream] = None

    def close(self) -> None:
        """Ends a commit that waits for room on the disk."""
        self._closed.set()

    def start_reader(self, reader: str, stream: str, at: Start, kind: ReaderKind = "operator", owner: str = "") -> int:
        if stream == reader and stream not in self.log.streams():
            self._coming[stream] = kind, owner
            return 0
        return self.log.start_reader(reader, stream, at, kind=kind, owner=owner)

    def named(self, prefix: str) -> set[str]:
        return self.log.named(prefix)

    def park(self, readers: Sequence[str]) -> None:
        """Parks readers, but not those of queues and states.

        What these hold is nowhere else, because the input was consumed. So such a reader continues to hold it as a
        quarantined one does: up to the bound, and not when the disk is nearly full.
        """
        for name in readers:
            self._coming.pop(name, None)
        known = self.log.readers()
        there = [name for name in readers if name in known and not known[name].parked]
        inside = [name for name in there if self.log.kind(known[name].stream) in ("queue", "state")]
        for name in inside:
            self.log.set_need(name, False)
        self.log.park([name for name in there if name not in inside])

    def set_need(self, reader: str, needed: bool) -> None:
        if self.log.cursor(reader) is not None:
            self.log.set_need(reader, needed)

    def grown(self) -> Sequence[str]:
        with self._lock:
            grown, self._grown = list(self._grown), {}
        return grown

    def next_arrival(self) -> float | None:
        """Nobody knows in real time."""
        return None

    def end(self, stream: str) -> int:
        # Asking for its end is much cheaper than asking whether it is there, and nearly always it is.
        try:
            return self.log.end(stream)
        except NoStream:
            return 0

    def watermark(self, stream: str, offset: int) -> int | None:
        try:
            return self.log.watermark(stream, offset)
        except NoStream:
            return None

    def key_mark(self, stream: str, offset: int, join: str = "") -> int | None:
        return self.log.key_mark(stream, offset, join)

    def newest_key(self, stream: str) -> int | None:
        return self.log.newest_key(stream)

    def reached(self, stream: str, key: int, join: str = "") -> int | None:
        return self.log.reached(stream, key, join)

    def past(self, stream: str, first: int, end: int) -> tuple[int, ...]:
        return self.log.past(stream, first, end)

    def let_go(self, stream: str, first: int, end: int, join: str) -> tuple[int, ...]:
        return self.log.let_go(stream, first, end, join)

    def place(self, stream: str, offset: int) -> int | None:
        return self.log.place(stream, offset)

    def marked(self, stream: str, first: int, end: int) -> int:
        return self.log.marked(stream, first, end)

    def arrival(self, stream: str, offset: int) -> float:
        """When a tuple arrived, in seconds; if retention has removed it, when the oldest remaining one did."""
        try:
            return self.log.arrival(stream, offset) / 1e6
        except Lagged as error:
            return self.log.arrival(stream, error.oldest) / 1e6

    def expiry(self, stream: str, offset: int) -> float:
        """Infinity: the rows of a log on disk do not carry when they expire."""
        return math.inf

    def bytes(self, stream: str, first: int, end: int) -> int:
        return self.log.bytes(stream, first, end)

    def train(self, stream: str, first: int, end: int) -> Train:
        """The range as a train; it may be an empty one of a queue that is not there yet."""
        return self.log.train(stream, first, end) if first < end else Train(stream, first, end)

    def versions(self, stream: str) -> Train:
        return kept_versions(self.log, stream)

    def held(self) -> Mapping[str, str]:
        """Streams whose readers have fallen behind up to the bound, each with the reason.

        A disk that is nearly full holds back sources, not queries: only queries can make room again, by reading on.
        """
        now = time.monotonic()
        if now >= self._look_again:
            self._held = dict(self._over_bound())
            self._look_again = now + self._pause
        return self._held

    def _over_bound(self) -> Iterator[tuple[str, str]]:
        slowest: dict[str, int] = {}
        for reader in self.log.readers().values():
            if reader.needed and reader.kind != "window":
                slowest[reader.stream] = min(reader.next, slowest.get(reader.stream, reader.next))
        for stream, retention in self.log.streams().items():
            if stream in slowest and retention.bound_bytes is not None:
                waiting = self.log.bytes(stream, slowest[stream], self.log.end(stream))
                if waiting >= retention.bound_bytes:
                    yield stream, f"{waiting:,} bytes wait for its readers, the bound is {retention.bound_bytes:,}"

    def commit(self, commits: Sequence[Commit]) -> None:
        """Makes results durable; while the disk is full, frees what may go and tries again."""
        written = [member[0] for commit in commits for file in commit.files for member in file.members]
        written += [stream for commit in commits for stream, _ in commit.watermarks]
        self._make_queues(written)
        while True:
            try:
                self.log.commit(commits)
                break
            except LogFull:
                self.log.collect()
                if self._closed.wait(FULL_DISK_PAUSE):
                    raise
        with self._lock:
            self._grown |= dict.fromkeys(written)
        self.committed()

    def wall(self) -> int:
        return round(self.log.now() * 1e6)

    def release_due(self, release: int) -> float | None:
        return release / 1e6

    def first_at(self, stream: str, time: int, since: int) -> int:
        return self.log.first_at(stream, time, max(since, self.log.oldest(stream)))

    def held_from(self, stream: str, first: int) -> int:
        bound = self.log.streams()[stream].bound_bytes
        return first if bound is None else max(first, self.log.newest_within(stream, bound))

    def lost(self, query: str) -> Sequence[Missing]:
        return [entry for entry in self.log.ledger() if entry.query == query and entry.kind == "lost"]

    def release(
        self, upto: Mapping[str, int], made: Callable[[], Sequence[Instance]], missed: Sequence[Missing]
    ) -> Sequence[Instance]:
        return self.log.release(upto, made, missed)

    def last_release(self, query: str) -> int | None:
        return self.log.last_release(query)

    def waiting_instances(self, query: str) -> Sequence[Instance]:
        return [each for each in self.log.instances("WHERE state = 'waiting'") if each.query == query]

    def answered_instances(self, query: str) -> Sequence[Instance]:
        return [each for each in self.log.instances("WHERE state = 'answered'") if each.query == query]

    def _make_queues(self, streams: Sequence[str]) -> None:
        known = self.log.streams()
        for stream in streams:
            if stream not in known:
                kind, owner = self._coming.get(stream, ("operator", ""))
                is_state = kind == "state"
                self.log.declare(stream, STATE if is_state else QUEUE, kind="state" if is_state else "queue")
                self.log.start_reader(stream, stream, kind=kind, owner=owner)
