"""Which rows a join by ordered keys lets go when they need more memory than it may have (WU §3.5).

A join remembers the rows of an input above the least mark of the others, but for those that rest in the log of a
leading input (see :class:`Trail`). If that is more than its budget, all marks are raised to a *level*: as far as
needed, and an eighth of the budget further, so that this is rare. What comes later at or below the level is let go. All
of it follows from the keys in the order in which the log takes them, row by row: batches change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.model.join_budget import JoinBudget, RowCost
from freshet.quality.disorder.heights import Climb, KeyHeights

Whole = NDArray[np.int64]
NO_MARK: Final = int(np.iinfo(np.int64).min)
"""Below all keys: there is no mark."""
_SLACK: Final = 8
"""When rows are let go, one in so many bytes of the budget becomes free."""
_BLOCK: Final = 1_000
GRID: Final = 16
"""The log enters a mark after every so many rows of a stream that a join with a bound reads, however large batches
are."""
_NEVER: Final = 2**62


class Trail(NamedTuple):
    """Where the mark of a stream had come how far. Its cursor rests at the first place at which the mark has reached
    the newest key of another input, and the log knows a mark at every place that is a multiple of :data:`GRID`. So
    places are rounded up to such, whatever the batches were.

    Args:
        rows: Numbers of rows, rising.
        marks: The mark after so many rows.

    >>> Trail.of([250, 600], [7, 9]).reached(np.array([7, 8, 10])).tolist()[:2]
    [256, 608]
    """

    rows: Whole
    marks: Whole

    @classmethod
    def of(cls, rows: Sequence[int] | Whole, marks: Sequence[int] | Whole) -> Trail:
        """From what the log knows."""
        return cls(-(-np.asarray(rows, np.int64) // GRID) * GRID, np.asarray(marks, np.int64))

    def reached(self, keys: Whole) -> Whole:
        """After how many rows the mark had come as far as each of some keys; more than there can be: it has not."""
        found: Whole = np.append(self.rows, _NEVER)[np.searchsorted(self.marks, keys)]
        return found


NO_TRAIL: Final = Trail.of([], [])


class KnownInput(NamedTuple):
    """An input of a join, as the log knows it.

    Args:
        heights: How high its keys have come.
        mark: Its key mark; :data:`NO_MARK`: it has none.
        cost: What a remembered row costs.
        trail: Where its mark had come how far, if its cursor may rest.
    """

    heights: KeyHeights
    mark: int
    cost: RowCost
    trail: Trail = NO_TRAIL


class Buffering(NamedTuple):
    """How a join buffers: see :class:`~freshet.model.join_budget.JoinBudget`."""

    rests: bool = False
    sorted: bool = False
    left: bool = False

    @classmethod
    def of(cls, budget: JoinBudget) -> Buffering:
        """That of a join with a bound."""
        return cls(budget.rests, budget.sorted, budget.left)


IN_MEMORY: Final = Buffering()


class Raise(NamedTuple):
    """From the row after this one on, all marks of the join are at least so high."""

    row: int
    level: int


@dataclass(frozen=True)
class Coming:
    """Rows that come into one stream while the others rest.

    Args:
        ports: The inputs of the join that they come to.
        climb: How high the keys of the stream are meanwhile.
        marks: Its key mark after each of the rows.
        first: Number of rows before them.
    """

    ports: frozenset[int]
    climb: Climb
    marks: Whole
    first: int = 0

    def trail(self, before: Trail) -> Trail:
        """The trail with these rows."""
        places = np.arange(GRID - 1 - self.first % GRID, len(self.marks), GRID)
        rows, marks = self.first + places + 1, self.marks[places]
        return Trail(np.concatenate([before.rows, rows]), np.concatenate([before.marks, marks]))


def held_bytes(inputs: Sequence[KnownInput], level: int = NO_MARK, how: Buffering = IN_MEMORY) -> int:
    """Bytes that a join remembers at most, if its marks are at least at a level.

    >>> heights = KeyHeights().after(np.arange(100))
    >>> inputs = [KnownInput(heights, 89, RowCost(10)), KnownInput(heights, 49, RowCost(10))]
    >>> held_bytes(inputs), held_bytes(inputs, 79), held_bytes(inputs, 99)
    (600, 300, 0)
    """
    return int(_Reckoning(inputs, how).still(np.array(level).reshape(1))[0])


def raises(
    inputs: Sequence[KnownInput], moving: Coming, size: int, level: int = NO_MARK, how: Buffering = IN_MEMORY
) -> list[Raise]:
    """The levels to which marks must be raised while rows come, so that what is remembered never exceeds a size.

    Args:
        inputs: The inputs of the join; those that move, as they were before.
        moving: The rows that come.
        size: Maximum number of bytes.
        level: The level so far.
        how: How the join buffers.

    >>> still = KnownInput(KeyHeights(), NO_MARK, RowCost(10))
    >>> climb = Climb(KeyHeights(), np.arange(100))
    >>> raises([still, still], Coming(frozenset({1}), climb, np.arange(100)), 400)
    [Raise(row=40, level=5), Raise(row=46, level=11), Raise(row=52, level=17), ...]
    """
    found: list[Raise] = []
    reckoning = _Reckoning(inputs, how, moving)
    done = 0
    while done < len(moving.marks):
        places = np.arange(done, min(done + _BLOCK, len(moving.marks)))
        over = np.flatnonzero(reckoning.moving(places, np.full(len(places), level)) > size)
        if not len(over):
            done = int(places[-1]) + 1
            continue
        row = int(places[over[0]])
        level = reckoning.least_level(row, level, size - size // _SLACK)
        found.append(Raise(row, level))
        done = row + 1
    return found


def gone(keys: Whole, past: NDArray[np.bool_], level: int, raised: Sequence[Raise]) -> list[int]:
    """Places of the rows that lie at or below the level when they come, but above the mark of their stream.

    Args:
        keys: The keys of the rows.
        past: Whether each lies at or below the mark.
        level: The level before them.
        raised: How it is raised while they come.

    >>> gone(np.array([3, 5, 4, 9]), np.array([False, False, True, False]), 2, [Raise(0, 4), Raise(1, 9)])
    [3]
    """
    rows = np.array([each.row for each in raised], np.int64)
    levels = np.array([level, *(each.level for each in raised)])
    # A level holds from the row after the one that raised it.
    held = levels[np.searchsorted(rows, np.arange(len(keys)))]
    found: list[int] = np.flatnonzero((keys <= held) & (held > NO_MARK) & ~past).tolist()
    return found


@dataclass(frozen=True)
class _Reckoning:
    inputs: Sequence[KnownInput]
    how: Buffering
    coming: Coming | None = None

    def least_level(self, row: int, level: int, size: int) -> int:
        """The least level with which all that is remembered after a row fits."""
        assert self.coming is not None
        known = [each.heights.kept for port, each in enumerate(self.inputs) if port not in self.coming.ports]
        levels = np.unique(np.concatenate([self.coming.climb.reached(row), *known]))
        levels = levels[levels > level]
        fits = self.moving(np.full(len(levels), row), levels) <= size
        return int(levels[np.argmax(fits)])

    def still(self, level: Whole) -> Whole:
        """Bytes remembered with each of some levels."""
        one = np.ones(len(level), np.int64)
        marks = [np.maximum(each.mark, level) for each in self.inputs]
        newest = [one * _or_none(each.heights.newest) for each in self.inputs]
        total = 0 * one
        for port, each in enumerate(self.inputs):
            low, come = self._bounds(port, marks, newest)
            came = each.heights.since(low + 1)
            rest = each.heights.behind(each.trail.reached(come)) if self.how.rests else None
            total += _cost(each, came, rest, come)
        return total

    def moving(self, places: Whole, level: Whole) -> Whole:
        """Bytes remembered after each of some of the rows that come, each with its level."""
        coming, one = self.coming, np.ones(len(places), np.int64)
        assert coming is not None
        marks, newest = [], []
        for port, each in enumerate(self.inputs):
            moves = port in coming.ports
            marks.append(np.maximum(coming.marks[places] if moves else each.mark, level) * one)
            newest.append(coming.climb.newest(places) if moves else one * _or_none(each.heights.newest))
        total = 0 * one
        for port, each in enumerate(self.inputs):
            low, come = self._bounds(port, marks, newest)
            rest = None
            if port in coming.ports:
                came = coming.climb.since(low + 1, places)
                if self.how.rests:
                    rest = coming.climb.behind(coming.trail(each.trail).reached(come), places)
            else:
                came = each.heights.since(low + 1)
                if self.how.rests:
                    rest = each.heights.behind(each.trail.reached(come))
            total += _cost(each, came, rest, come)
        return total

    def _bounds(self, port: int, marks: Sequence[Whole], newest: Sequence[Whole]) -> tuple[Whole, Whole]:
        """The mark above which an input is remembered, and how far the others have come."""
        others = [at for at in range(len(marks)) if at != port]
        least = np.minimum.reduce([marks[at] for at in others])
        stays = self.how.sorted or (self.how.left and port == 1)
        low = np.minimum(least, marks[port]) if stays else least
        if self.how.sorted:  # rows wait for the marks
            return low, least
        return low, np.minimum.reduce([np.maximum(marks[at], newest[at]) for at in others])


def _cost(each: KnownInput, came: tuple[Whole, Whole], rest: tuple[Whole, Whole] | None, come: Whole) -> Whole:
    rows, varying = came
    if rest is not None:
        # While nothing has come of another input, all of it rests.
        some = come > NO_MARK
        rows, varying = (np.maximum(0, of - less) * some for of, less in zip(came, rest, strict=True))
    cost: Whole = rows * each.cost.fixed + varying * each.cost.varies
    return cost


def _or_none(key: int | None) -> int:
    return NO_MARK if key is None else key
