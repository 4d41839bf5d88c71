"""Units: steps bound to trains, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from freshet.model.plan import Chain
from freshet.model.train import SegmentFile, Train


@dataclass(frozen=True, slots=True)
class Work:
    """Chains that read the same train."""

    train: Train
    chains: tuple[Chain, ...]


@dataclass(frozen=True, slots=True)
class State:
    """The state of a fold as a unit finds it, and how far event time comes with the unit.

    Args:
        fold: The fold.
        ranges: The live range of each of its state streams, in order; empty where it has none yet.
        before: Watermark of each of its ports when the unit begins, in microseconds; None: none is known yet.
        after: The same when the unit has been processed.
    """

    fold: str
    ranges: tuple[Train, ...]
    before: tuple[int | None, ...]
    after: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """A step bound to trains; its id names the Spark job group and every file that its tasks write."""

    id: str
    works: tuple[Work, ...]
    states: tuple[State, ...] = ()
    """States of the folds in its chains."""
    tables: tuple[Train, ...] = ()
    """For each table that its chains join with, the versions that are kept, a tuple and segment each."""

    @property
    def rows(self) -> int:
        """Tuples times chains that it processes."""
        return sum(work.train.rows * len(work.chains) for work in self.works)


@dataclass(frozen=True, slots=True)
class OperatorRun:
    """What one operator did in a unit; ``seconds`` are its part of the time that the unit kept its worker."""

    operator: int
    rows_in: int
    rows_out: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ChainResult:
    """What one chain did in a unit.

    ``arrivals`` are arrival times (seconds) of the tuples that it let through, at evenly spaced ranks from the
    earliest to the latest. Simulated executors give all of them, with the time at which each departed;
    on Spark ``departures`` is None: all depart when the unit is committed.
    ``failure`` is set where the chain raised: its part of the unit is not committed.
    ``dropped`` says how many rows go from the low end of the state streams of its folds.
    """

    chain: Chain
    train: Train
    rows_out: int
    operators: tuple[OperatorRun, ...]
    arrivals: Sequence[float] | np.ndarray = ()
    departures: np.ndarray | None = None
    errors: int = 0
    failure: str | None = None
    dropped: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class UnitResult:
    """A finished unit: nothing of it exists until the log has committed it.

    ``retry`` is set where the unit failed for a reason that is no chain's fault (disk full, cancelled, lost
    executor): nothing of it is committed and its trains go back to their queues.
    """

    unit: Unit
    started: float
    finished: float
    chains: tuple[ChainResult, ...] = ()
    files: tuple[SegmentFile, ...] = ()
    overhead: float = 0.0
    retry: str | None = None
    parts: dict[str, float] = field(default_factory=dict)
    """Seconds by part (plan, job), for those who look into the overhead."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What becomes true together: readers' cursors move from ``first`` to ``end`` and files join the log."""

    cursors: tuple[tuple[str, str, int, int], ...] = ()
    """(reader, stream, first, end)"""
    files: tuple[SegmentFile, ...] = ()
    watermarks: tuple[tuple[str, int], ...] = ()
    """(stream, microseconds): from the stream's end on, as it is with these files, no tuple is from before."""
