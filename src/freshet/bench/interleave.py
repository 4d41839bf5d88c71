"""Measuring two things fairly on a machine whose speed changes while one measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")


def interleave(
    sides: Mapping[str, Callable[[], T]], rounds: int, advance: Callable[[], None] = lambda: None
) -> dict[str, list[T]]:
    """Runs every side once in each round, in turning order, so that neither profits from what the other warmed up.

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
