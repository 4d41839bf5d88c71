"""When each element is due, and which one is due first."""

from __future__ import annotations

from collections.abc import Container, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_GOLDEN: Final = 0.6180339887498949
"""Multiples of it, modulo 1, spread evenly: polls of elements with equal rates do not come together."""
_LONGEST: Final = 1e300


class DueTimes:
    """The times, and a heap of them; entries of the heap that do not hold any more are dropped when they come up.

    Args:
        count: Number of elements; at first none is ever due.

    >>> times = DueTimes(2)
    >>> times.put(0, 5.0), times.put(1, 3.0), times.put(1, 9.0)
    (None, None, None)
    >>> times.first(now=4.0, busy=()), times.first(now=6.0, busy=()), times.wait(now=4.0)
    (None, 0, 1.0)
    """

    def __init__(self, count: int) -> None:
        self.times = np.full(count, np.inf)
        """When each element is due; infinite: never."""
        self._heap: list[tuple[float, int]] = []

    def add(self, count: int) -> None:
        """More elements; they are never due."""
        self.times = np.append(self.times, np.full(count, np.inf))

    def put(self, element: int, when: float) -> None:
        """An element is due at a time."""
        self.times[element] = when
        heappush(self._heap, (when, element))

    def drop(self, elements: int | NDArray[np.bool_]) -> None:
        """Elements are never due."""
        self.times[elements] = np.inf

    def replace(self, times: Floats) -> None:
        """All elements are due at other times."""
        self.times = times
        some = np.flatnonzero(np.isfinite(times))
        self._heap = list(zip(times[some].tolist(), some.tolist(), strict=True))
        heapify(self._heap)

    def first(self, now: float, busy: Container[int]) -> int | None:
        """The element that has been due longest and is not busy; None: there is none."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            when, element = heap[0]
            if self.times[element] == when and element not in busy:
                return element
            heappop(heap)
        return None

    def take(self) -> None:
        """The first one is under way."""
        heappop(self._heap)

    def wait(self, now: float) -> float:
        """Seconds until an element may be due; infinite if none will be."""
        return max(0.0, self._heap[0][0] - now) if self._heap else float("inf")

    def next(self, element: int, now: float, interval: float) -> None:
        """An element was polled and is due again after an interval.

        It keeps to the beat if the poll was only a little late; what was missed is not made up for.
        """
        due = float(self.times[element])
        self.put(element, due + interval if due <= now < due + interval else now + interval)

    def spread(self, now: float, last: Floats, frequencies: Floats, kept: Sequence[int] = ()) -> None:
        """New times by new frequencies: an interval after the last poll, or spread over an interval if that is past.

        Args:
            now: The time.
            last: When each element was polled last.
            frequencies: Polls a second of each.
            kept: Elements that keep their times.
        """
        with np.errstate(divide="ignore"):
            intervals = 1.0 / frequencies
        due = last + intervals
        overdue = (due < now) & (self.times > now)
        spread = now + np.minimum(intervals, _LONGEST) * ((np.arange(len(due)) * _GOLDEN) % 1.0)
        late = np.where(overdue, np.minimum(spread, self.times), np.maximum(due, np.minimum(self.times, now)))
        planned = np.where(frequencies == 0.0, np.inf, late)
        # An element that never answered is due when it was put off to; the plan has no last poll to count from.
        times = np.where(np.isnan(last), self.times, planned)
        times[list(kept)] = self.times[list(kept)]
        self.replace(times)
