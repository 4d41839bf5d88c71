"""The calendar queue: priorities in O(1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Final

from freshet.policies.ratio.number_set import NumberSet

_FEWEST: Final = 16
_CROWD: Final = 64

Entry = tuple[float, int, int]
"""(minus priority, order of insertion, item): the smallest entry is the one to serve first."""


class CalendarQueue:
    """A priority queue over real numbers with insert, change, remove and look-at-the-best in O(1), amortised.

    Each bucket holds a range of priorities, and there are about as many buckets as items (Brown 1988; FAS §4.5; CAR
    §4.4.2.1). The ranges are computed again when the number of items has doubled or fallen to a quarter, or when one
    bucket has become crowded. Unlike the events of a simulation, priorities do not only fall. So the best bucket is not
    found by walking through the days of a year, but by a :class:`~freshet.policies.ratio.number_set.NumberSet` of the
    buckets in use. A bucket is a heap, so that any number of equal priorities costs O(log n) at worst. Among equal
    priorities the item that came first is served first.

    ``inserts`` and ``extracts`` count operations, for those who charge for them (FAS §6): changing a priority is one
    insert, taking an item out is one extract, looking is free.

    >>> queue = CalendarQueue()
    >>> for item, priority in ((1, 0.5), (2, 2.0), (3, 2.0)):
    ...     queue.put(item, priority)
    >>> queue.best()
    (2, 2.0)
    >>> queue.put(1, 7.0); queue.remove(2)
    True
    >>> list(queue), queue.inserts, queue.extracts
    ([(1, 7.0), (3, 2.0)], 4, 1)
    """

    __slots__ = ("_buckets", "_dead", "_entries", "_layout", "_order", "_since", "_used",
                 "extracts", "inserts")  # fmt: skip

    def __init__(self) -> None:
        self.inserts = 0
        self.extracts = 0
        self._order = 0
        self._entries: dict[int, Entry] = {}
        self._lay_out()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, item: int) -> bool:
        return item in self._entries

    def __iter__(self) -> Iterator[tuple[int, float]]:
        """Items with their priorities, best first; the queue must not change during the iteration."""
        entries = self._entries
        for bucket in reversed(self._buckets):
            for entry in sorted(entry for entry in bucket if entries.get(entry[2]) is entry):
                yield entry[2], -entry[0]

    def put(self, item: int, priority: float) -> None:
        """Adds an item, or changes its priority; an item that already has this priority keeps its place."""
        old = self._entries.get(item)
        if old is not None:
            if old[0] == -priority:
                return
            self._dead += 1
        self.inserts += 1
        self._order += 1
        bucket = self._place((-priority, self._order, item))
        self._since += 1
        count = len(self._entries)
        crowded = len(bucket) > _CROWD and self._since > count
        if crowded or count > 2 * len(self._buckets) or self._dead > count + _CROWD:
            self._lay_out()

    def remove(self, item: int) -> bool:
        """Takes an item out; returns whether it was there."""
        if self._entries.pop(item, None) is None:
            return False
        self.extracts += 1
        self._dead += 1
        if 4 * len(self._entries) < len(self._buckets) > _FEWEST:
            self._lay_out()
        return True

    def best(self) -> tuple[int, float] | None:
        """The item with the highest priority, which stays in the queue; None if the queue is empty."""
        entries, used = self._entries, self._used
        while (index := used.largest()) is not None:
            bucket = self._buckets[index]
            while bucket:
                entry = bucket[0]
                if entries.get(entry[2]) is entry:
                    return entry[2], -entry[0]
                # It was removed or changed since. Only now does that cost anything.
                heappop(bucket)
                self._dead -= 1
            used.discard(index)
        return None

    def _place(self, entry: Entry) -> list[Entry]:
        index = self._layout.index(-entry[0])
        bucket = self._buckets[index]
        if not bucket:
            self._used.add(index)
        heappush(bucket, entry)
        self._entries[entry[2]] = entry
        return bucket

    def _lay_out(self) -> None:
        """Makes as many buckets as there are items, over the range in which most of their priorities lie."""
        entries = self._entries.values()
        count = max(_FEWEST, 1 << (len(entries) - 1).bit_length() if entries else 0)
        self._layout = _Layout(sorted(-entry[0] for entry in entries if math.isfinite(entry[0])), count)
        self._buckets: list[list[Entry]] = [[] for _ in range(count)]
        self._used = NumberSet()
        self._dead = 0
        self._since = 0
        for entry in list(entries):
            self._place(entry)


class _Layout:
    """The bucket that a priority belongs to. Half of the buckets are for the best twentieth of the items, because these
    are looked for most often. The other half is for the rest; there the worst twentieth shares the lowest bucket."""

    __slots__ = ("_best_scale", "_high", "_last", "_low", "_middle", "_scale")

    def __init__(self, priorities: Sequence[float], count: int) -> None:
        some = priorities or (0.0,)
        margin = len(some) // 20
        self._low, self._high = some[margin], some[-1 - margin]
        self._middle, self._last = count // 2, count - 1
        self._scale = _scale(self._middle, self._high - self._low)
        self._best_scale = _scale(count - self._middle, some[-1] - self._high)

    def index(self, priority: float) -> int:
        if priority >= self._high:
            place = (priority - self._high) * self._best_scale
            return self._middle + int(place) if place < self._last - self._middle else self._last
        place = (priority - self._low) * self._scale
        return min(int(place), self._middle) if place > 0.0 else 0


def _scale(buckets: int, span: float) -> float:
    """Buckets per unit; any number will do if the span is zero or infinite."""
    scale = buckets / span if 0.0 < span < math.inf else math.inf
    return scale if math.isfinite(scale) else 1.0
