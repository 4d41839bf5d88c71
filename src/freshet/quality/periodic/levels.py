"""Levels: how good the answers of all instances can be so that every one of them is in time (RT §4.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from freshet.quality.hull import lower_hull

_EXACT: Final = 1e-5
_PIECES: Final = 48
BALANCED: Final = 3.0
"""Power by which losses of level count where levels are balanced."""
_ROOM: Final = 1e-9
"""Seconds by which rounding may exceed a deadline."""


@dataclass(frozen=True, slots=True)
class LevelDemand:
    """An instance that is to be answered.

    Args:
        key: Names it.
        due: Seconds from now until its deadline.
        seconds: Seconds that it takes, by the level of its answer: from its quality table and its plan. It rises with
            the level.
        least: Lowest level at which it runs.
        weight: Its importance; only the average goes by it.
    """

    key: str
    due: float
    seconds: Callable[[float], float]
    least: float = 0.0
    weight: float = 1.0


def fair_levels(demands: Sequence[LevelDemand]) -> dict[str, float]:
    """The highest levels of which none can rise without a lower one falling (max-min).

    The instances run by their deadlines, and by *every* deadline those that are due must fit: RT Fig. 7 has one time
    available for all. A common level goes down from 1 until they fit; Fig. 7 goes on while the estimate is below the
    time available and must go on while it is above. The level is found by bisection. Instances that are due after the
    deadline that was the tightest then go up again.

    Returns:
        The level of each; 0 for those that cannot be in time.

    >>> linear = lambda seconds: lambda level: seconds * level
    >>> found = fair_levels([LevelDemand("a", 0.5, linear(0.8)), LevelDemand("b", 2.0, linear(0.2))])
    >>> {key: round(level, 4) for key, level in found.items()}
    {'a': 0.625, 'b': 1.0}
    >>> found = fair_levels([LevelDemand("a", 5.0, linear(1.0)), LevelDemand("b", 5.0, linear(9.0))])
    >>> {key: round(level, 4) for key, level in found.items()}
    {'a': 0.5, 'b': 0.5}
    """
    rest, taken = possible(demands), 0.0
    found = {demand.key: 0.0 for demand in demands}
    while rest:
        level, fixed = _common_level(rest, taken)
        for demand in rest[:fixed]:
            found[demand.key] = max(level, demand.least)
            taken += demand.seconds(found[demand.key])
        rest = rest[fixed:]
    return found


def possible(demands: Sequence[LevelDemand]) -> list[LevelDemand]:
    """As many of the demands as can be in time at their lowest levels, by their deadlines: where one would be late,
    the longest of those so far is left out (J. M. Moore, "An n job, one machine sequencing algorithm for minimizing the
    number of late jobs", 1968).

    >>> cost = lambda seconds: lambda level: seconds
    >>> [one.key for one in possible([LevelDemand("a", 1.0, cost(0.9)), LevelDemand("b", 1.1, cost(0.5))])]
    ['b']
    """
    found: list[tuple[float, LevelDemand]] = []
    taken = 0.0
    for demand in by_deadline(demands):
        found.append((demand.seconds(demand.least), demand))
        taken += found[-1][0]
        if taken > demand.due + _ROOM:
            longest = max(found, key=lambda each: each[0])
            found.remove(longest)
            taken -= longest[0]
    return [demand for _, demand in found]


def by_deadline(demands: Sequence[LevelDemand]) -> list[LevelDemand]:
    """The demands in the order in which they run."""
    return sorted(demands, key=lambda demand: demand.due)


def _common_level(demands: Sequence[LevelDemand], taken: float) -> tuple[float, int]:
    """The highest level at which all fit, and how many of them the tightest deadline holds there."""
    low, high, held = 0.0, 1.0, _tightest(demands, 1.0, taken)
    if held is None:
        return 1.0, len(demands)
    while high - low > _EXACT:
        middle = (low + high) / 2.0
        late = _tightest(demands, middle, taken)
        if late is None:
            low = middle
        else:
            high, held = middle, late
    return low, held or len(demands)


def _tightest(demands: Sequence[LevelDemand], level: float, taken: float) -> int | None:
    """How many instances the last deadline that would be missed holds; None: all are in time."""
    held = None
    for number, demand in enumerate(demands, 1):
        taken += demand.seconds(max(level, demand.least))
        if taken > demand.due + _ROOM:
            held = number
    return held


def average_levels(demands: Sequence[LevelDemand], power: float = 1.0) -> dict[str, float]:
    """The levels with the highest average: what costs much for what it is worth gives way first (RT §4.4).

    By each deadline in order, the seconds that are too many are taken from those that are due, the cheapest loss of
    level per second first. Where a level falls faster at first than later, as that of a strict table does, its pieces
    go as one (see :func:`~freshet.quality.hull.lower_hull`).

    Args:
        demands: The instances.
        power: Losses of level count by this power of theirs. Above 1, small losses of many come before large ones of
            few; the higher it is, the nearer levels come to those of :func:`fair_levels`.

    >>> linear = lambda seconds: lambda level: seconds * level
    >>> found = average_levels([LevelDemand("a", 5.0, linear(1.0)), LevelDemand("b", 5.0, linear(9.0))])
    >>> {key: round(level, 4) for key, level in found.items()}
    {'a': 1.0, 'b': 0.4444}
    >>> found = average_levels([LevelDemand("a", 5.0, linear(1.0)), LevelDemand("b", 5.0, linear(9.0))], power=3.0)
    >>> {key: round(level, 1) for key, level in found.items()}
    {'a': 0.8, 'b': 0.5}
    """
    ordered = possible(demands)
    pieces = sorted(
        (loss, number, seconds) for number, demand in enumerate(ordered) for loss, seconds in _pieces(demand, power)
    )
    freed, taken = [0.0] * len(ordered), 0.0
    for number, demand in enumerate(ordered):
        taken += demand.seconds(1.0)
        excess = taken - demand.due
        for place, (loss, owner, seconds) in enumerate(pieces):
            if excess <= _ROOM:
                break
            if owner <= number and seconds > 0.0:
                take = min(seconds, excess)
                pieces[place] = loss, owner, seconds - take
                freed[owner] += take
                taken, excess = taken - take, excess - take
    levels = {demand.key: _level_without(demand, seconds) for demand, seconds in zip(ordered, freed, strict=True)}
    return {demand.key: levels.get(demand.key, 0.0) for demand in demands}


def balanced_levels(demands: Sequence[LevelDemand]) -> dict[str, float]:
    """Levels between fair ones and those with the highest average: losses count by their cube.

    Fair levels are low for all as soon as one instance is dear at any level; those with the highest average leave a few
    instances hardly anything. Here the average is nearly as high as it can be, and levels differ little.

    >>> linear = lambda seconds: lambda level: seconds * level
    >>> found = balanced_levels([LevelDemand("a", 5.0, linear(1.0)), LevelDemand("b", 5.0, linear(9.0))])
    >>> {key: round(level, 1) for key, level in found.items()}
    {'a': 0.8, 'b': 0.5}
    """
    return average_levels(demands, BALANCED)


def _pieces(demand: LevelDemand, power: float) -> list[tuple[float, float]]:
    """What each part of an instance's time is worth: the level lost per second freed, and the seconds."""
    most = demand.seconds(1.0)
    levels = [demand.least + (1.0 - demand.least) * place / _PIECES for place in range(_PIECES, -1, -1)]
    points = [(most - demand.seconds(level), demand.weight * (1.0 - level) ** power) for level in levels]
    return lower_hull(points)


def _level_without(demand: LevelDemand, freed: float) -> float:
    """The highest level at which an instance takes this many seconds less than at level 1."""
    allowed = demand.seconds(1.0) - freed + _ROOM
    if demand.seconds(1.0) <= allowed:
        return 1.0
    low, high = demand.least, 1.0
    if demand.seconds(low) > allowed:
        return 0.0
    while high - low > _EXACT:
        middle = (low + high) / 2.0
        low, high = (middle, high) if demand.seconds(middle) <= allowed else (low, middle)
    return low


def pseudo_deadlines(times: Sequence[float], due: Sequence[float]) -> list[float]:
    """By when each instance should have ended, in seconds from now: instances run one after the other, so their times
    add up. They are stretched alike as far as every deadline allows (RT §4.3: proportional to the estimated time).

    Args:
        times: Seconds that each instance takes at its level, in the order in which they run.
        due: Seconds until the deadline of each.

    >>> pseudo_deadlines([1.0, 2.0, 3.0], [6.0, 6.0, 6.0]), pseudo_deadlines([1.0, 1.0], [4.0, 4.0])
    ([1.0, 3.0, 6.0], [2.0, 4.0])
    """
    ends = list(accumulate(times))
    stretch = min((by / end for end, by in zip(ends, due, strict=True) if end > 0.0), default=1.0)
    return [end * max(1.0, stretch) if math.isfinite(stretch) else end for end in ends]
