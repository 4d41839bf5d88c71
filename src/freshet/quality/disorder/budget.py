"""Which rows a join by ordered keys lets go when they need more memory than it may have (WU §3.5).

A join remembers the rows of an input above the least mark of the others. If that is more than its budget, all marks are
raised to a *level*: as far as needed, and an eighth of the budget further, so that this is rare. What comes later at or
below the level is let go. All of it follows from the keys in the order in which the log takes them, row by row: batches
change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.model.join_budget import RowCost
from freshet.quality.disorder.heights import Climb, KeyHeights

Whole = NDArray[np.int64]
NO_MARK: Final = int(np.iinfo(np.int64).min)
"""Below all keys: there is no mark."""
_SLACK: Final = 8
"""When rows are let go, one in so many bytes of the budget becomes free."""
_BLOCK: Final = 1_000


class KnownInput(NamedTuple):
    """An input of a join, as the log knows it.

    Args:
        heights: How high its keys have come.
        mark: Its key mark; :data:`NO_MARK`: it has none.
        cost: What a remembered row costs.
    """

    heights: KeyHeights
    mark: int
    cost: RowCost


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
    """

    ports: frozenset[int]
    climb: Climb
    marks: Whole


def held_bytes(inputs: Sequence[KnownInput], level: int = NO_MARK) -> int:
    """Bytes that a join remembers at most, if its marks are at least at a level.

    >>> heights = KeyHeights().after(np.arange(100))
    >>> inputs = [KnownInput(heights, 89, RowCost(10)), KnownInput(heights, 49, RowCost(10))]
    >>> held_bytes(inputs), held_bytes(inputs, 79), held_bytes(inputs, 99)
    (600, 300, 0)
    """
    marks = [np.array([max(each.mark, level)]) for each in inputs]
    return int(_bytes(inputs, marks, lambda port, keys: inputs[port].heights.since(keys))[0])


def raises(inputs: Sequence[KnownInput], moving: Coming, size: int, level: int = NO_MARK) -> list[Raise]:
    """The levels to which marks must be raised while rows come, so that what is remembered never exceeds a size.

    Args:
        inputs: The inputs of the join; those that move, as they were before.
        moving: The rows that come.
        size: Maximum number of bytes.
        level: The level so far.

    >>> still = KnownInput(KeyHeights(), NO_MARK, RowCost(10))
    >>> climb = Climb(KeyHeights(), np.arange(100))
    >>> raises([still, still], Coming(frozenset({1}), climb, np.arange(100)), 400)
    [Raise(row=40, level=5), Raise(row=46, level=11), Raise(row=52, level=17), ...]
    """
    found: list[Raise] = []
    done = 0
    while done < len(moving.marks):
        places = np.arange(done, min(done + _BLOCK, len(moving.marks)))
        over = np.flatnonzero(_while_moving(inputs, moving, places, np.array(level)) > size)
        if not len(over):
            done = int(places[-1]) + 1
            continue
        row = int(places[over[0]])
        level = _least_level(inputs, moving, row, level, size - size // _SLACK)
        found.append(Raise(row, level))
        done = row + 1
    return found


def _least_level(inputs: Sequence[KnownInput], moving: Coming, row: int, level: int, size: int) -> int:
    """The least level with which all that is remembered after a row fits."""
    known = [inputs[port].heights.kept for port in range(len(inputs)) if port not in moving.ports]
    levels = np.unique(np.concatenate([moving.climb.reached(row), *known]))
    levels = levels[levels > level]
    fits = _while_moving(inputs, moving, np.full(len(levels), row), levels) <= size
    return int(levels[np.argmax(fits)])


def _while_moving(inputs: Sequence[KnownInput], moving: Coming, places: Whole, level: Whole) -> Whole:
    """Bytes remembered after each of some rows, each with its level."""
    marks = [
        np.maximum(moving.marks[places] if port in moving.ports else each.mark, level) + np.zeros(len(places), np.int64)
        for port, each in enumerate(inputs)
    ]

    def since(port: int, keys: Whole) -> tuple[Whole, Whole]:
        return moving.climb.since(keys, places) if port in moving.ports else inputs[port].heights.since(keys)

    return _bytes(inputs, marks, since)


def _bytes(
    inputs: Sequence[KnownInput], marks: Sequence[Whole], since: Callable[[int, Whole], tuple[Whole, Whole]]
) -> Whole:
    total: Whole = np.zeros(len(marks[0]), np.int64)
    for port, each in enumerate(inputs):
        others = np.minimum.reduce([mark for at, mark in enumerate(marks) if at != port])
        rows, varying = since(port, others + 1)
        total += rows * each.cost.fixed + varying * each.cost.varies
    return total
