"""Sets of small whole numbers that know their order."""

from __future__ import annotations

from typing import Final

_BITS: Final = 512
_SHIFT: Final = 9
_MASK: Final = _BITS - 1


class NumberSet:
    """A set of whole numbers from 0 on that quickly finds its largest member, and the first member from a number on.

    Members are bits of words, and a summary has a bit for each word that is not zero. So a search looks at one word and
    the summary, whether the set spans a hundred or a hundred thousand numbers.

    >>> numbers = NumberSet()
    >>> for number in (3, 70_000, 12):
    ...     numbers.add(number)
    >>> numbers.largest(), numbers.following(4), numbers.following(13), numbers.following(70_001)
    (70000, 12, 70000, None)
    >>> numbers.discard(70_000); numbers.largest()
    12
    """

    __slots__ = ("_summary", "_words")

    def __init__(self) -> None:
        self._words: list[int] = []
        self._summary = 0

    def __bool__(self) -> bool:
        return self._summary != 0

    def __contains__(self, number: int) -> bool:
        word = number >> _SHIFT
        return word < len(self._words) and bool(self._words[word] >> (number & _MASK) & 1)

    def add(self, number: int) -> None:
        """Adds a number."""
        word = number >> _SHIFT
        if word >= len(self._words):
            self._words += [0] * (word + 1 - len(self._words))
        self._words[word] |= 1 << (number & _MASK)
        self._summary |= 1 << word

    def discard(self, number: int) -> None:
        """Removes a number if it is a member."""
        if number in self:
            word = number >> _SHIFT
            self._words[word] ^= 1 << (number & _MASK)
            if not self._words[word]:
                self._summary ^= 1 << word

    def largest(self) -> int | None:
        """The largest member; None if the set is empty."""
        if not self._summary:
            return None
        word = self._summary.bit_length() - 1
        return (word << _SHIFT) + self._words[word].bit_length() - 1

    def following(self, number: int) -> int | None:
        """The smallest member that is not below a number; None if there is none."""
        word = number >> _SHIFT
        if word >= len(self._words):
            return None
        rest = self._words[word] >> (number & _MASK)
        if rest:
            return number + _lowest(rest)
        later = self._summary >> (word + 1)
        if not later:
            return None
        word += 1 + _lowest(later)
        return (word << _SHIFT) + _lowest(self._words[word])


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
