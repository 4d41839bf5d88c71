"""Marks of one stream: how far event time, or an ordered key, has come at its offsets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field


class Marks:
    """Entries (offset, time): no tuple at or behind the offset is older than the time. Both only ever grow.

    >>> marks = Marks()
    >>> marks.add(10, 5_000_000), marks.add(20, 4_000_000), marks.add(20, 7_000_000)
    (True, False, True)
    >>> marks.at(9), marks.at(10), marks.at(25)
    (None, 5000000, 7000000)
    >>> marks.reached(5_000_001), marks.reached(8_000_000)
    (20, None)
    """

    __slots__ = ("_offsets", "_times")

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._times: list[int] = []

    @property
    def newest(self) -> int | None:
        """The greatest time."""
        return self._times[-1] if self._times else None

    @property
    def offset(self) -> int | None:
        """The offset of the newest entry."""
        return self._offsets[-1] if self._offsets else None

    def add(self, offset: int, time: int) -> bool:
        """Takes an entry; returns False if it says nothing new."""
        if self._times and time <= self._times[-1]:
            return False
        if self._offsets and self._offsets[-1] == offset:
            self._times[-1] = time
        else:
            self._offsets.append(offset)
            self._times.append(time)
        return True

    def entries(self) -> list[tuple[int, int]]:
        """All entries."""
        return list(zip(self._offsets, self._times, strict=True))

    def at(self, offset: int) -> int | None:
        """The watermark at an offset; None if none is known."""
        place = bisect_right(self._offsets, offset)
        return self._times[place - 1] if place else None

    def reached(self, time: int) -> int | None:
        """The offset of the first entry that is kept and not below a time; None: there is none."""
        place = bisect_left(self._times, time)
        return self._offsets[place] if place < len(self._times) else None

    def last_before(self, offset: int) -> int | None:
        """Offset of the entry that holds at an offset, if entries before it can go; None if there are none."""
        place = bisect_right(self._offsets, offset)
        return self._offsets[place - 1] if place > 1 else None

    def drop_before(self, offset: int) -> None:
        """Forgets entries that no offset from this one on needs."""
        place = bisect_right(self._offsets, offset) - 1
        if place > 0:
            del self._offsets[:place], self._times[:place]

    def clear(self) -> None:
        """Forgets everything."""
        self._offsets.clear()
        self._times.clear()


class PastRows:
    """Offsets of the tuples of one stream that came past the mark of its ordered key.

    >>> past = PastRows()
    >>> past.add([3, 5, 9])
    >>> past.drop_before(4)
    >>> past.between(0, 9), past.between(6, 9)
    ((5,), ())
    """

    __slots__ = ("_offsets",)

    def __init__(self) -> None:
        self._offsets: list[int] = []

    def add(self, offsets: Iterable[int]) -> None:
        """Takes offsets behind all that are known."""
        self._offsets.extend(offsets)

    @property
    def end(self) -> int:
        """The offset behind the last of them; 0: there is none."""
        return self._offsets[-1] + 1 if self._offsets else 0

    def between(self, first: int, end: int) -> tuple[int, ...]:
        """Those in the range [first, end)."""
        offsets = self._offsets
        return tuple(offsets[bisect_left(offsets, first) : bisect_left(offsets, end)])

    def drop_before(self, offset: int) -> None:
        """Forgets those before an offset."""
        del self._offsets[: bisect_left(self._offsets, offset)]

    def clear(self) -> None:
        """Forgets everything."""
        self._offsets.clear()


@dataclass(slots=True)
class LetGo:
    """How far the memory of a join has raised the mark of a stream at its offsets, and which tuples it let go.

    Args:
        marks: The levels.
        past: The tuples that were let go.
        reckoned: Whether all tuples that the join has still to read were reckoned when they came, or since.
    """

    marks: Marks = field(default_factory=Marks)
    past: PastRows = field(default_factory=PastRows)
    reckoned: bool = False

    @property
    def end(self) -> int:
        """Behind all that it knows."""
        return max(self.marks.offset or 0, self.past.end)
