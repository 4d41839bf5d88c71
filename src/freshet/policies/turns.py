"""Turns: numbers that are served one after the other."""

from __future__ import annotations

from collections.abc import Callable

from freshet.policies.ratio.number_set import NumberSet


class Turns:
    """Gives numbers their turn in ascending order, again and again; those that have nothing to do are passed over.

    >>> turns, busy = Turns(), {2, 5}
    >>> for number in (2, 3, 5):
    ...     turns.add(number)
    >>> [turns.next(busy.__contains__) for _ in range(3)]
    [2, 5, 2]
    """

    __slots__ = ("_members", "last")

    def __init__(self) -> None:
        self._members = NumberSet()
        self.last = -1
        """The number whose turn it was last."""

    def add(self, number: int) -> None:
        """A number may have something to do."""
        self._members.add(number)

    def next(self, is_busy: Callable[[int], bool]) -> int | None:
        """The next number that has something to do; None if there is none. Others are forgotten until they are added
        again."""
        members = self._members
        while members:
            number = members.following(self.last + 1)
            if number is None:
                self.last = -1
            elif is_busy(number):
                self.last = number
                return number
            else:
                members.discard(number)
        return None
