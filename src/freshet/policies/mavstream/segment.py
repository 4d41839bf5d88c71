"""Segment scheduling."""

from __future__ import annotations

from typing import ClassVar, Final

from freshet.model import View
from freshet.policies.mavstream.path_policy import ROWS, PathPolicy
from freshet.policies.mavstream.segments import PathSegment, first_segment


class SegmentScheduling(PathPolicy):
    """Runs the path segment that releases most memory per second (MAV §3.1, 4).

    What little is left of many tuples waits between the segments until nothing else releases more. So memory is low,
    and answers come late.

    Sizes of tuples are measured where tuples wait. Between the operators of a segment none do: there, sizes follow
    from the types of the columns.

    Args:
        rows: Tuples to take from a base queue at once.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); path = view.add("q", [(1.0, 0.2), (5.0, 0.9), (1.0, 1.0)])
    >>> for number in path[:2]:
    ...     view.operators[number].pending, view.ready[number] = 1, None
    >>> SegmentScheduling().decide(view).steps
    (Step(nodes=(0,), rows=10000),)
    """

    name: ClassVar[str] = "segment"
    rule = "most memory released per second"

    def __init__(self, rows: int = ROWS) -> None:
        super().__init__(rows)
        self.seen: dict[int, float] = {}
        """Bytes of a tuple in front of each operator where tuples have waited."""

    def changed(self, view: View, query: int) -> None:
        """A query changed, and others may get the numbers of its operators."""
        for number in view.queries[query].operators:
            self.seen.pop(number, None)
        super().changed(view, query)

    def best(self, view: View, number: int) -> tuple[tuple[int, ...], float]:
        """The segment that begins at an operator, and what it releases."""
        path = self.paths.of(view, number)
        for each in path:
            operator = view.operators[each]
            if operator.pending and (size := operator.bytes_waiting):
                self.seen[each] = size / operator.pending
        return self.segment(view, path)

    def segment(self, view: View, path: tuple[int, ...]) -> PathSegment:
        """The segment with which a path begins."""
        return first_segment(view, path, self.seen)

    def weighs(self, view: View, operator: int) -> dict[str, float]:
        known = self.scored(view, operator)
        waiting = view.operators[operator].pending
        return {"release": known.score, "operators": len(known.nodes), "waiting": waiting}


POLICIES: Final = (SegmentScheduling,)
