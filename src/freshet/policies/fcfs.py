"""First come, first served."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush, nsmallest
from typing import ClassVar, Final

from freshet.model import NOTHING, Decision, View
from freshet.policies.reason import FEW
from freshet.policies.tracking import TrackingPolicy


class FirstComeFirstServed(TrackingPolicy):
    """Serves the queue whose first tuple has waited longest (the FCFS of FAS §6).

    Args:
        rows: Tuples to take from it at once; None takes all that wait.
    """

    name: ClassVar[str] = "fcfs"
    rule = "oldest tuple first"

    def __init__(self, rows: int | None = None) -> None:
        super().__init__(rows)
        self._heads: list[tuple[float, int]] = []
        self._known: dict[int, float] = {}

    def enter(self, view: View, number: int) -> None:
        head = view.operators[number].head_arrival
        if self._known.get(number) != head:
            self._known[number] = head
            heappush(self._heads, (head, number))

    def leave(self, number: int) -> None:
        self._known.pop(number, None)

    def choose(self, view: View) -> Decision:
        """One step for the tuple that came first; ties go to the lower operator number."""
        heads, known = self._heads, self._known
        while heads:
            head, number = heads[0]
            if known.get(number) == head and number in view.ready:
                return self.serve(view, number)
            heappop(heads)
            if known.get(number) == head:
                del known[number]
        return NOTHING

    def order(self, view: View) -> Iterable[int]:
        """The first few operators that come next."""
        # The k least of a heap are among its first 2^k. An operator that left and came back is there more than once.
        heads = nsmallest(2 * FEW, self._heads[: 2 ** (2 * FEW)])
        return dict.fromkeys(number for head, number in heads if self._known.get(number) == head)


POLICIES: Final = (FirstComeFirstServed,)
