"""Measures two things fairly on a machine with a speed that changes meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from freshet.bench.stage import Stage

T = TypeVar("T")


def interleave(
    sides: Mapping[str, Callable[[], T]], rounds: int, advance: Callable[[], None] = lambda: None
) -> dict[str, list[T]]:
    """Runs every side once in each round, in alternating order, so that neither profits from the other's warm-up.

    Returns:
        What each side gave, by round.

    >>> order = []
    >>> interleave({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2)
    {'a': [None, None], 'b': [None, None]}
    >>> order
    ['a', 'b', 'b', 'a']
    """
    found: dict[str, list[T]] = {name: [] for name in sides}
    for number in range(rounds):
        names = list(sides)[:: 1 if number % 2 == 0 else -1]
        for name in names:
            found[name].append(sides[name]())
        advance()
    return found


def measure(stage: Stage, sides: Mapping[str, Callable[[], T]], rounds: int, warm_up: int) -> dict[str, list[T]]:
    """Runs every side in some warm-up rounds, then in the rounds that it returns; see :func:`interleave`."""
    with stage.steps("warming up", warm_up) as advance:
        interleave(sides, warm_up, advance)
    with stage.steps("measuring", rounds) as advance:
        return interleave(sides, rounds, advance)
