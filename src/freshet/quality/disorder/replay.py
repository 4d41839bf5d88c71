"""What a join by ordered keys would have let go if its bound had been there when the rows came that its streams keep.

A join that begins with kept rows reads them in the order in which the log took them, so its levels are reckoned in
that order, too: see :mod:`freshet.quality.disorder.budget`. Where not even all rows of a stretch could fill the bound,
nothing is let go, and the stretch is taken as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.model.join_budget import JoinBudget
from freshet.quality.disorder.budget import (
    NO_MARK,
    NO_TRAIL,
    Buffering,
    Coming,
    KnownInput,
    Raise,
    Trail,
    gone,
    held_bytes,
    raises,
)
from freshet.quality.disorder.heights import Climb, KeyHeights

Whole = NDArray[np.int64]


class ReplayedRows(NamedTuple):
    """Rows of one stream that came one after the other.

    Args:
        stream: The stream.
        first: Offset of the first one.
        keys: Their keys.
        sizes: Their bytes, as far as they differ from row to row.
        marks: The key mark that the log knows after each of them.
        past: Whether each came past the mark.
    """

    stream: str
    first: int
    keys: Whole
    sizes: Whole
    marks: Whole
    past: NDArray[np.bool_]


class LevelEntry(NamedTuple):
    """What the log is to enter: from an offset on a stream has a level, or these of its rows before are let go."""

    stream: str
    at: int
    level: int | None
    past: tuple[int, ...] = ()


@dataclass(slots=True)
class ReplayedStream:
    """A stream in a replay.

    Args:
        at: Offset of the next row.
        heights: How high the keys of the rows before it have come, as far as the join knows them.
        mark: The key mark there.
        trail: Where the mark comes how far, also behind it, in numbers of rows.
    """

    at: int
    heights: KeyHeights = field(default_factory=KeyHeights)
    mark: int = NO_MARK
    trail: Trail = NO_TRAIL


@dataclass
class BudgetReplay:
    """Takes the kept rows of the streams of a join, and notes what the log is to enter because of its bound.

    Args:
        budget: The memory of the join.
        streams: Its streams.
        level: How far its marks are raised already.

    >>> from freshet.model.join_budget import RowCost
    >>> budget = JoinBudget("q.join", ("a", "b"), (RowCost(10), RowCost(10)), 400)
    >>> replay = BudgetReplay(budget, {"a": ReplayedStream(0), "b": ReplayedStream(0)})
    >>> keys = np.arange(50)
    >>> replay.take([ReplayedRows("a", 0, keys, 0 * keys, keys, keys < 0)])
    >>> replay.level, replay.entries[:2]
    (11, [LevelEntry(stream='a', at=41, level=5, past=()), LevelEntry(stream='a', at=47, level=11, past=())])
    """

    budget: JoinBudget
    streams: Mapping[str, ReplayedStream]
    level: int = NO_MARK
    entries: list[LevelEntry] = field(default_factory=list)

    def take(self, stretch: Sequence[ReplayedRows]) -> None:
        """Takes the next rows, in the order in which they came."""
        if stretch and self._may_fill(stretch):
            if len(stretch) == 1:
                self._one_by_one(stretch[0])
                return
            half = len(stretch) // 2
            self.take(stretch[:half])
            self.take(stretch[half:])
            return
        for rows in stretch:
            self._let_go(rows, [])
            known = self.streams[rows.stream]
            self._came(rows, known.heights.after(rows.keys, rows.sizes))

    def _may_fill(self, stretch: Sequence[ReplayedRows]) -> bool:
        """Whether more than the bound could be remembered on the way, if nothing rested."""
        more = 0
        for name, cost in zip(self.budget.streams, self.budget.costs, strict=True):
            mine = [rows for rows in stretch if rows.stream == name]
            more += sum(len(rows.keys) * cost.fixed + int(rows.sizes.sum()) * cost.varies for rows in mine)
        how = Buffering(sorted=self.budget.sorted, left=self.budget.left)
        return more + held_bytes(self._inputs(), self.level, how) > self.budget.size

    def _one_by_one(self, rows: ReplayedRows) -> None:
        budget, known = self.budget, self.streams[rows.stream]
        ports = frozenset(port for port, name in enumerate(budget.streams) if name == rows.stream)
        climb = Climb(known.heights, rows.keys, rows.sizes)
        coming = Coming(ports, climb, rows.marks, known.heights.rows)
        raised = raises(self._inputs(), coming, budget.size, self.level, Buffering.of(budget))
        self.entries += [LevelEntry(rows.stream, rows.first + each.row + 1, each.level) for each in raised]
        self._let_go(rows, raised)
        self._came(rows, climb.heights)
        if raised:
            self.level = raised[-1].level
            others = [name for name in budget.concerned if name != rows.stream]
            self.entries += [LevelEntry(name, self.streams[name].at, self.level) for name in others]

    def _let_go(self, rows: ReplayedRows, raised: Sequence[Raise]) -> None:
        if left_out := gone(rows.keys, rows.past, self.level, raised):
            end = rows.first + len(rows.keys)
            self.entries.append(LevelEntry(rows.stream, end, None, tuple(rows.first + each for each in left_out)))

    def _came(self, rows: ReplayedRows, heights: KeyHeights) -> None:
        known = self.streams[rows.stream]
        known.at, known.heights = rows.first + len(rows.keys), heights
        known.mark = int(rows.marks[-1])

    def _inputs(self) -> list[KnownInput]:
        found = []
        for name, cost in zip(self.budget.streams, self.budget.costs, strict=True):
            known = self.streams[name]
            there = int(np.searchsorted(known.trail.rows, known.heights.rows, side="right"))
            trail = Trail(known.trail.rows[:there], known.trail.marks[:there])
            found.append(KnownInput(known.heights, known.mark, cost, trail))
        return found
