"""Which path a waiting tuple takes from where it waits."""

from __future__ import annotations

from freshet.model import View, push_through
from freshet.policies.mavstream.segments import LEAST_SECONDS


class RestPaths:
    """The path of the greatest capacity from an operator to an output (MAV §3.1, 3).

    From the first operator it is an operator path. Further on it is the rest of one: tuples wait there if the path
    branches off work that queries share, or if another strategy has brought them there. Paths are kept until
    :meth:`forget`.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView.over({0: (1, 2), 1: (), 2: (3,), 3: ()}, {1: (9.0, 1.0)})
    >>> paths = RestPaths()
    >>> paths.of(view, 0), paths.seconds(view, 0), paths.of(view, 1)
    ((0, 2, 3), 3.0, (1,))
    """

    __slots__ = ("_next", "_seconds")

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}
        self._next: dict[int, int | None] = {}

    def of(self, view: View, operator: int) -> tuple[int, ...]:
        """The path from an operator on."""
        self.seconds(view, operator)
        path, after = [operator], self._next[operator]
        while after is not None:
            path.append(after)
            after = self._next[after]
        return tuple(path)

    def seconds(self, view: View, operator: int) -> float:
        """Expected seconds of a tuple on that path."""
        if operator not in self._seconds:
            for number in reversed(push_through(view, operator)):
                self._look_at(view, number)
        return self._seconds[operator]

    def capacity(self, view: View, operator: int) -> float:
        """Tuples per second that the path takes."""
        return 1.0 / max(self.seconds(view, operator), LEAST_SECONDS)

    def _look_at(self, view: View, number: int) -> None:
        each, seconds = view.operators[number], self._seconds
        # What is the output of a query has arrived, whoever else reads it.
        after = None if each.outputs else min(each.readers, key=seconds.__getitem__, default=None)
        self._next[number] = after
        seconds[number] = each.cost + (0.0 if after is None else each.selectivity * seconds[after])

    def forget(self) -> None:
        """Forgets everything: costs have changed, or queries."""
        self._seconds.clear()
        self._next.clear()
