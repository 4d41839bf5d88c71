"""Path capacity scheduling."""

from __future__ import annotations

from typing import ClassVar, Final

from freshet.model import View
from freshet.policies.mavstream.path_policy import PathPolicy


class PathCapacity(PathPolicy):
    """Runs the operator path of the greatest capacity, from its base queue to the output (PCS, MAV §3.1, 3).

    Tuples that are answered soonest go first and go all the way, so mean latency is low. Paths of little capacity wait
    meanwhile, and their queues grow.

    Args:
        rows: Tuples to take from a base queue at once.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView()
    >>> for name, cost in (("dear", 4.0), ("cheap", 1.0)):
    ...     (number,) = view.add(name, [(cost, 1.0)])
    ...     view.operators[number].pending, view.ready[number] = 1, None
    >>> PathCapacity().decide(view).steps
    (Step(nodes=(1,), rows=10000),)
    """

    name: ClassVar[str] = "pcs"
    rule = "greatest path capacity"

    def best(self, view: View, number: int) -> tuple[tuple[int, ...], float]:
        """The whole way to the output, and its capacity."""
        path = self.paths.of(view, number)
        return path, self.paths.capacity(view, number)

    def weighs(self, view: View, operator: int) -> dict[str, float]:
        known = self.scored(view, operator)
        waiting = view.operators[operator].pending
        return {"capacity": known.score, "operators": len(known.nodes), "waiting": waiting}


POLICIES: Final = (PathCapacity,)
