"""Which elements to explore next: those that the plan leaves out, so that it notices when they slow down."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Exploring:
    """Elements in rounds, each probed by two polls: one to know the state, one a telling gap later.

    An optimal plan never polls elements that change too often for their worth. A single poll after a long time finds
    them changed, whatever their rate. A second poll after about the time between two changes at which the plan would
    include the element says on which side of that rate it lies (CAR §6.2.3 asks for statistics "as they are
    synchronized"; this is our answer for those that are not).

    >>> exploring = Exploring()
    >>> exploring.begin(np.array([4, 7]), np.array([0.0, 1.0]), np.array([5.0, 5.0]), round_seconds=100.0)
    >>> for now in (10.0, 11.0, 15.0):
    ...     print(exploring.next(now))
    ...     exploring.taken(now)
    4
    7
    4
    """

    def __init__(self) -> None:
        self._gaps: dict[int, float] = {}
        self._waiting: list[tuple[float, int]] = []
        self._second: list[tuple[float, int]] = []
        self._round = 0.0

    def begin(self, elements: NDArray[np.intp], last: Floats, gaps: Floats, *, round_seconds: float) -> None:
        """Replaces the elements to explore.

        Args:
            elements: Their numbers.
            last: When each was polled last; those that wait longest come first.
            gaps: The telling gap of each in seconds.
            round_seconds: How long a round takes; a second poll is of use only before the next round.
        """
        before = self._gaps
        self._gaps = dict(zip(elements.tolist(), gaps.tolist(), strict=True))
        self._round = round_seconds
        self._second = [each for each in self._second if each[1] in self._gaps and each[1] in before]
        second = {element for _, element in self._second}
        waits = zip(last.tolist(), elements.tolist(), strict=True)
        self._waiting = [each for each in waits if each[1] not in second]
        heapify(self._second)
        heapify(self._waiting)

    def __len__(self) -> int:
        return len(self._gaps)

    def next(self, now: float) -> int | None:
        """The element to probe now, if any; it stays the next until it is :meth:`taken`."""
        if self._second and self._second[0][0] <= now:
            return self._second[0][1]
        if self._waiting:
            last, element = self._waiting[0]
            gap = self._gaps[element]
            if self._twice(gap) or now - last >= gap:
                return element
        return None

    def taken(self, now: float) -> None:
        """The next element was handed out."""
        if self._second and self._second[0][0] <= now:
            heappush(self._waiting, (now, heappop(self._second)[1]))
            return
        element = heappop(self._waiting)[1]
        gap = self._gaps[element]
        if self._twice(gap):
            heappush(self._second, (now + gap, element))
        else:
            heappush(self._waiting, (now, element))

    def _twice(self, gap: float) -> bool:
        return gap < 0.5 * self._round
