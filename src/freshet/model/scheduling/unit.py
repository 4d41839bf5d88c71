"""Units: steps bound to trains, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from freshet.model.promises.keep import Missing
from freshet.model.scheduling.instance import Instance
from freshet.model.scheduling.train import SegmentFile, Train

Input = Train | int
"""What comes in at a port: a train, or what a chain of the same unit outputs, by its place there."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Fused nodes in a row: each but the first takes what the one before it outputs, and nobody else does.

    A unit is cut into chains where a node has several inputs, where several nodes read it, and where what it outputs
    is to be kept.

    Args:
        nodes: Their numbers in the network.
        inputs: What comes in at each port of the first one; an empty train if nothing does.
        writes: Streams that what the last one outputs is appended to: outputs of queries, and queues of readers that
            are not in the unit.
        arrival: The arrival that all rows which it writes bear, in microseconds: the release of a periodic query. None:
            each has its own.

    >>> Chain((3, 4), (Train("s", 0, 10),), ("q",)).rows
    10
    """

    nodes: tuple[int, ...]
    inputs: tuple[Input, ...]
    writes: tuple[str, ...] = ()
    arrival: int | None = None

    @property
    def trains(self) -> tuple[Train, ...]:
        """The trains among its inputs."""
        return tuple([each for each in self.inputs if isinstance(each, Train)])

    @property
    def rows(self) -> int:
        """Tuples of its trains."""
        rows = 0
        for each in self.inputs:  # sum() is slower, and a unit may have hundreds of chains
            if isinstance(each, Train):
                rows += each.end - each.first
        return rows

    @property
    def is_thinned(self) -> bool:
        """Whether only some of the tuples of its trains are processed."""
        for each in self.inputs:  # noqa: SIM110  # any() is slower, and a unit may have hundreds of chains
            if isinstance(each, Train) and each.keep is not None:
                return True
        return False

    @property
    def tells_ports(self) -> bool:
        """Whether its result says how many tuples came in at each port: several do, or not all are processed."""
        return len(self.inputs) > 1 or self.is_thinned


@dataclass(frozen=True, slots=True)
class State:
    """The state of a fold as a unit finds it, and how far event time comes with the unit.

    Args:
        ranges: The live range of each of its state streams, in order; of a state in parts, first those of the first
            part.
        before: Watermark of each of its ports when the unit begins, in microseconds; None: none is known yet.
        after: The same when the unit has been processed.
        rewrites: Places among the ranges that the unit writes anew, because they lie in many small segments.
        parts: Number of parts that it lies in, by key.
        becomes: Number of parts in which the unit leaves it.
    """

    fold: str
    ranges: tuple[Train, ...]
    before: tuple[int | None, ...]
    after: tuple[int | None, ...]
    rewrites: tuple[int, ...] = ()
    parts: int = 1
    becomes: int | None = None

    @property
    def is_resplit(self) -> bool:
        """Whether the unit divides it anew."""
        return self.becomes is not None and self.becomes != self.parts

    def of_part(self, part: int) -> tuple[Train, ...]:
        """The ranges of one part.

        >>> ranges = tuple(Train(name, 0, 1) for name in ("a1", "b1", "a2", "b2"))
        >>> [each.stream for each in State("q", ranges, (None,), (None,), parts=2).of_part(1)]
        ['a2', 'b2']
        """
        streams = len(self.ranges) // self.parts
        return self.ranges[part * streams : (part + 1) * streams]


@dataclass(frozen=True, slots=True)
class Unit:
    """A step bound to trains; its id names the Spark job group and every file that its tasks write."""

    id: str
    chains: tuple[Chain, ...]
    """Each after those that it reads."""
    states: tuple[State, ...] = ()
    """States of the folds in its chains."""
    tables: tuple[Train, ...] = ()
    """For each table that its chains join with, the versions that are kept, a tuple and segment each."""

    @property
    def rows(self) -> int:
        """Tuples that its chains take from queues; a tuple counts once for each chain."""
        return sum(chain.rows for chain in self.chains)

    @property
    def nodes(self) -> tuple[int, ...]:
        """All nodes that it runs, each after those that it reads."""
        return tuple(number for chain in self.chains for number in chain.nodes)


@dataclass(slots=True)  # not frozen: a unit makes hundreds of them, and that would take three times as long
class OperatorRun:
    """What one operator did in a unit; ``seconds`` are its part of the time that the unit kept its worker."""

    operator: int
    rows_in: int
    rows_out: int
    seconds: float


@dataclass(slots=True)  # not frozen, for the same reason
class ChainResult:
    """What one chain did in a unit.

    ``arrivals`` are arrival times (seconds) of the tuples that it let through, at evenly spaced ranks from the
    earliest to the latest. Simulated executors give all of them, with the time at which each departed;
    on Spark ``departures`` is None: all depart when the unit is committed. They also say when each expires.
    ``failure`` is set if the chain raised: its part of the unit is not committed.
    ``dropped`` says how many rows go from the low end of the state streams of its folds.
    ``entered`` is set where it has several ports, or some of its tuples were not kept: how many came in at each port.
    ``share`` is below 1 if the time of an instance was over before all was read that was to be kept.
    """

    chain: Chain
    rows_out: int
    operators: tuple[OperatorRun, ...]
    arrivals: Sequence[float] | np.ndarray = ()
    departures: np.ndarray | None = None
    expiries: np.ndarray | None = None
    errors: int = 0
    failure: str | None = None
    dropped: tuple[tuple[str, int], ...] = ()
    entered: tuple[int, ...] = ()
    share: float = 1.0


class KeptCounts(NamedTuple):
    """What workers had kept of the states that a unit needed.

    Args:
        found: Number of folds whose state was there.
        rebuilt: Number of folds whose state was built from the log.
        bytes: Memory of all that the worker keeps after the unit.
    """

    found: int = 0
    rebuilt: int = 0
    bytes: int = 0

    def plus(self, later: KeptCounts) -> KeptCounts:
        """The same with what was counted later.

        >>> KeptCounts(1, 0, 500).plus(KeptCounts(0, 1, 400))
        KeptCounts(found=1, rebuilt=1, bytes=400)
        """
        return KeptCounts(self.found + later.found, self.rebuilt + later.rebuilt, later.bytes or self.bytes)


NOTHING_KEPT: Final = KeptCounts()
"""No fold was in the unit."""


class Worths(NamedTuple):
    """What tuples at an edge were worth by the ``value`` of their query, those that were not kept included.

    Args:
        edge: Name of the edge's cursor.
        values: Values at evenly spaced ranks, from the least to the greatest.
        rows: Number of tuples.
    """

    edge: str
    values: tuple[float, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class UnitResult:
    """A finished unit: nothing of it exists until the log has committed it.

    ``retry`` is set if the unit failed for a reason that is no chain's fault (disk full, cancelled, lost
    executor): nothing of it is committed and its trains go back to their queues. ``apart`` is set with it where
    connected chains of several queries, at these places, failed together and nobody can tell whose fault it was: they
    are to run again with queues between them, each by itself.
    """

    unit: Unit
    started: float
    finished: float
    chains: tuple[ChainResult, ...] = ()
    """In the order of the unit's chains."""
    files: tuple[SegmentFile, ...] = ()
    """What goes to streams; if a chain failed, also what chains gave to others, by :func:`given_by`."""
    overhead: float = 0.0
    retry: str | None = None
    apart: tuple[int, ...] = ()
    parts: dict[str, float] = field(default_factory=dict)
    """Seconds by part (plan, job; of residents plan, send, work, report), for those who look into the overhead."""
    way: str | None = None
    """The way that it went, if that may be another one than the executor expects for its operators."""
    kept: KeptCounts = NOTHING_KEPT
    worths: tuple[Worths, ...] = ()
    """What tuples were worth at edges that are thinned by value."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What becomes true together: readers' cursors move from ``first`` to ``end`` and files join the log."""

    cursors: tuple[tuple[str, str, int, int], ...] = ()
    """(reader, stream, first, end)"""
    files: tuple[SegmentFile, ...] = ()
    watermarks: tuple[tuple[str, int], ...] = ()
    """(stream, microseconds): from the stream's end on, as it is with these files, no tuple is from before."""
    missing: tuple[Missing, ...] = ()
    """What the ledger gets."""
    instances: tuple[Instance, ...] = ()
    """Instances of periodic queries as they are from now on."""


def given_by(unit: str, place: int) -> str:
    """Name under which the files of a unit hold what the chain at a place gave only to other chains."""
    return f"{unit}.{place}"


def components(chains: Sequence[Chain]) -> list[tuple[int, ...]]:
    """The places of chains, in groups: a chain belongs to those that it takes tuples from.

    >>> train = Train("s", 0, 9)
    >>> components([Chain((0,), (train,)), Chain((1,), (train,)), Chain((2,), (0,)), Chain((3,), (0, train))])
    [(0, 2, 3), (1,)]
    """
    part_of: list[list[int]] = []
    for place, chain in enumerate(chains):
        part = [place]
        part_of.append(part)
        for source in chain.inputs:
            if isinstance(source, int) and part_of[source] is not part:
                part_of[source] += part
                part = part_of[source]
                for other in part:
                    part_of[other] = part
    return [tuple(sorted(part)) for part in {id(part): part for part in part_of}.values()]
