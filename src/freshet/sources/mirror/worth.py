"""What the elements of a live mirror are worth: as given, times what readers or accesses say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from freshet.log import Lagged
from freshet.log.readable import Readable
from freshet.model import FreshetError
from freshet.sources.mirror.book import MirrorBook
from freshet.sources.mirror.options import MirrorOptions, WorthFrom
from freshet.sources.mirror.readers import MirrorReader, read_worth

_UNSEEN: Final = 0.5
"""Accesses that each element is given beforehand, so that what nobody has looked at so far is not worthless."""
_ALIKE: Final = 0.01
"""Relative change of a worth that is not worth a new plan."""
_PAUSE: Final = 10.0
"""Seconds between looks at the accesses."""


class ElementWorth:
    """Keeps the worth of elements up to date; the lock of the book is held.

    Args:
        options: Of the mirror.
        column: The column with the element's name; None: the stream has none.
    """

    def __init__(self, options: MirrorOptions, column: pa.Field | None) -> None:
        self._accesses = Accesses(options.worth) if isinstance(options.worth, WorthFrom) else None
        self._by_queries = options.worth == "queries"
        self._column = column
        self._readers: tuple[MirrorReader, ...] | None = None
        self._weighed: tuple[Any, int] | None = None
        self._next_look = 0.0

    def read_from(self, log: Readable) -> None:
        """Says where accesses are."""
        if self._accesses is not None:
            self._accesses.log = log

    def read_by(self, readers: Iterable[MirrorReader]) -> None:
        """These queries read the mirror from now on; may be called from any thread."""
        self._readers = tuple(readers)

    def look(self, book: MirrorBook, now: float, *, again: bool) -> None:
        """Weighs elements anew if something has changed: ``again`` says that elements have."""
        if self._by_queries and self._readers is not None:
            readers = self._readers
            if again or self._weighed != (readers, len(book.elements)):
                self._weighed = (readers, len(book.elements))
                book.weigh(read_worth([each.name for each in book.elements], self._column, readers))
        if self._accesses is not None and (again or now >= self._next_look):
            self._next_look = now + _PAUSE
            book.weigh(self._accesses.look(book, now), _ALIKE)

    @property
    def position(self) -> dict[str, int]:
        """How far accesses were read."""
        return {} if self._accesses is None else {"accesses": self._accesses.next}

    def restore(self, position: Mapping[str, Any]) -> None:
        """Continues with the first access that was not read."""
        if self._accesses is not None:
            self._accesses.next = position.get("accesses", 0)


class Accesses:
    """Counts accesses to elements; older ones count less (CAR §2.2.1: p = M_i / M).

    Args:
        options: Which rows are accesses.
    """

    def __init__(self, options: WorthFrom) -> None:
        self._options = options
        self.log: Readable | None = None
        self.next = 0
        """Offset of the first access that was not read."""

    def look(self, book: MirrorBook, now: float) -> Sequence[float]:
        """Takes in new accesses; returns how often each element was looked at, with old looks counting less."""
        for row in self._news():
            number = book.numbers.get(str(row.get(self._options.column)))
            if number is not None:
                known = book.elements[number]
                known.accesses = self.faded(known.accesses, now - known.accessed) + self._count(row)
                known.accessed = now
                book.unsaved.touched.add(number)
        return [_UNSEEN + self.faded(each.accesses, now - each.accessed) for each in book.elements]

    def faded(self, count: float, seconds: float) -> float:
        """What a count is worth some time later.

        >>> Accesses(WorthFrom(accesses="clicks", half_life="1 h")).faded(8.0, 7200.0)
        2.0
        """
        return count and float(count * 0.5 ** (max(0.0, seconds) / self._options.half_life))

    def _count(self, row: Mapping[str, Any]) -> float:
        weight = 1.0 if self._options.weight is None else row.get(self._options.weight)
        if not isinstance(weight, int | float | Decimal) or not math.isfinite(weight):
            return 0.0
        return max(0.0, float(weight))

    def _news(self) -> list[dict[str, Any]]:
        if self.log is None:
            return []
        try:
            end = self.log.end(self._options.accesses)
        except FreshetError:  # it is declared when its query starts
            return []
        if end <= self.next:
            return []
        try:
            rows: list[dict[str, Any]] = self.log.read(self._options.accesses, self.next, end).to_pylist()
        except Lagged as lagged:
            self.next = lagged.oldest
            return []
        self.next = end
        return rows
