"""What the engine asks of a log and of an executor; Spark and the simulator both answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

import pyarrow as pa

from freshet.log.kinds import ReaderKind
from freshet.model import Commit, Instance, Missing, Network, Start, Train, Unit, UnitResult


class TrainSource(Protocol):
    """Gives out trains: a log does."""

    def train(self, stream: str, first: int, end: int) -> Train:
        """A range of a stream."""

    def past(self, stream: str, first: int, end: int) -> tuple[int, ...]:
        """Offsets of the tuples of a range that came past the key mark of their stream."""

    def let_go(self, stream: str, first: int, end: int, join: str) -> tuple[int, ...]:
        """Offsets of the tuples of a range that a join with a bound on its memory let go."""

    def place(self, stream: str, offset: int) -> int | None:
        """The place of a tuple in the append sequence, the same for all tuples of a segment; None: it is not there."""

    def marked(self, stream: str, first: int, end: int) -> int:
        """Where a train that begins at an offset may end so that the key mark there is known to the tuple: the last
        such place up to ``end`` or, if there is none, the next one."""

    def versions(self, stream: str) -> Train:
        """The versions of a table that are kept, from the stream that holds them: a tuple and a segment each."""


class QueueLog(TrainSource, Protocol):
    """The log as the engine sees it."""

    @property
    def epoch(self) -> int:
        """Number of this run over the log; part of every unit's id."""

    @property
    def commits(self) -> int:
        """Transactions of the log that are durable; part of every unit's id, and so of the names of its files."""

    def start_reader(self, reader: str, stream: str, at: Start, kind: ReaderKind = "operator", owner: str = "") -> int:
        """The cursor of a reader; a new one starts at the given end. Its kind and the query that owns it, if one does,
        are kept with it."""

    def named(self, prefix: str) -> AbstractSet[str]:
        """The streams whose names begin in this way."""

    def park(self, readers: Sequence[str]) -> None:
        """Parks readers: they keep their place, and need nothing until they are started again."""

    def set_need(self, reader: str, needed: bool) -> None:
        """Says whether a reader holds data beyond the bounds (a quarantined one does not)."""

    def grown(self) -> Sequence[str]:
        """Streams that got tuples, or whose watermark moved, since the last call."""

    def next_arrival(self) -> float | None:
        """When the next tuple will come, if that is known (simulated time)."""

    def end(self, stream: str) -> int:
        """The offset after the newest tuple."""

    def watermark(self, stream: str, offset: int) -> int | None:
        """Microseconds: no tuple at or behind an offset is from before that event time; None: nobody knows."""

    def key_mark(self, stream: str, offset: int, join: str = "") -> int | None:
        """An ordered key: no tuple at or behind an offset has one at or below it, but those past the mark or, for a
        join with a bound on its memory, let go; None: nobody knows."""

    def newest_key(self, stream: str) -> int | None:
        """The greatest ordered key of a stream; None: nobody knows."""

    def reached(self, stream: str, key: int, join: str = "") -> int | None:
        """The first offset that is known at which the key mark is not below a key; None: there is none."""

    def arrival(self, stream: str, offset: int) -> float:
        """When the tuple at an offset arrived, in seconds."""

    def expiry(self, stream: str, offset: int) -> float:
        """When the tuple at an offset expires, in seconds; infinity: never, or nobody knows."""

    def bytes(self, stream: str, first: int, end: int) -> int:
        """Size of a range."""

    def held(self) -> Mapping[str, str]:
        """Streams that take nothing now, each with the reason."""

    def commit(self, commits: Sequence[Commit]) -> None:
        """Makes results durable in one transaction, in order."""

    def wall(self) -> int:
        """The time by which tuples arrive, in microseconds."""

    def release_due(self, release: int) -> float | None:
        """When the engine's clock shows the time of a release; None: nobody knows."""

    def first_at(self, stream: str, time: int, since: int) -> int:
        """The offset, from ``since`` on, of the first tuple that arrived at a time (microseconds) or later."""

    def held_from(self, stream: str, first: int) -> int:
        """The offset from which on windows may hold a stream, of which they now hold what is behind ``first``: in front
        of it lies more than the bound of the stream."""

    def lost(self, query: str) -> Sequence[Missing]:
        """What the ledger has of a query that was let go or lost."""

    def release(
        self, upto: Mapping[str, int], made: Callable[[], Sequence[Instance]], missed: Sequence[Missing]
    ) -> Sequence[Instance]:
        """Takes releases of periodic queries: all that were made, and what the ledger gets of missed ones. ``upto`` has
        the last of each query, in microseconds. After it no tuple arrives before them."""

    def last_release(self, query: str) -> int | None:
        """The last release of a query that was taken or missed; None: it never ran."""

    def waiting_instances(self, query: str) -> Sequence[Instance]:
        """Instances of a query that were released and not answered, by release."""

    def answered_instances(self, query: str) -> Sequence[Instance]:
        """Answered instances of a query that are remembered, by release."""


class Executor(Protocol):
    """Runs units."""

    @property
    def slots(self) -> int:
        """How many units may run at once."""

    @property
    def alone(self) -> Collection[str]:
        """Queries that may end the run and must not be in a unit with others, so that the others' answers stand."""

    @property
    def slow(self) -> AbstractSet[int]:
        """Operators that would keep the others of a unit from going a quicker way."""

    def install(
        self, network: Network, schemas: Mapping[str, pa.Schema], fail_on_error: AbstractSet[str]
    ) -> Mapping[str, pa.Schema]:
        """Prepares for all operators of a network over streams of these schemas; returns the schemas of the outputs by
        query. An evaluation error fails the queries ``fail_on_error``."""

    def sizes(self, node: int) -> tuple[float, float]:
        """Bytes of a tuple in front of an installed operator (the mean over its inputs) and of one that it gives out,
        as far as that is known before it runs."""

    def parts(self, fold: str, now: int, rows: int, remembered: int) -> int:
        """The number of parts in which the state of an installed fold should lie, by key; 1: in one piece.

        Args:
            fold: Its name.
            now: Number of parts in which it lies.
            rows: Tuples of the train that comes next.
            remembered: Rows of the state.
        """

    def way(self, nodes: Collection[int]) -> str:
        """The way in which a unit of these operators would run: units of the same way have the same overhead."""

    def submit(self, unit: Unit) -> None:
        """Starts a unit."""

    def finished(self) -> Sequence[UnitResult]:
        """Units that finished since the last call; does not wait."""

    def next_finish(self) -> float | None:
        """When the next unit will finish, if that is known (simulated time)."""

    def cancel(self, unit: str) -> None:
        """Asks for a unit to be given up; it comes back with ``retry`` set."""

    def close(self) -> None:
        """Stops the workers."""
