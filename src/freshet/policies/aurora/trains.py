"""Trains: how many of the waiting tuples a step takes (CAR §3.3.2)."""

from __future__ import annotations

import math
from typing import Protocol

from freshet.model import UserError, View
from freshet.policies.aurora.rest_costs import RestCosts


class Trains(Protocol):
    """Sizes trains."""

    def rows(self, view: View, operator: int) -> int | None:
        """Tuples to take from an operator's queue; None: all."""


class WholeQueue:
    """The whole queue, which is the default in Aurora."""

    def rows(self, view: View, operator: int) -> int | None:
        """All."""
        return None


class RowLimit:
    """A maximum number of tuples.

    >>> from freshet.simulation.view import RecordView
    >>> RowLimit(100).rows(RecordView(), 0)
    100
    """

    def __init__(self, rows: int) -> None:
        if rows < 1:
            raise UserError(f"a train of {rows} rows is empty: use 1 or more")
        self._rows = rows

    def rows(self, view: View, operator: int) -> int | None:
        """The limit."""
        return self._rows


class QueueShare:
    """A share of the queue, rounded up.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); _ = view.add("q", [(1.0, 1.0)]); view.operators[0].pending = 7
    >>> QueueShare(0.5).rows(view, 0)
    4
    """

    def __init__(self, share: float) -> None:
        if not 0.0 < share <= 1.0:
            raise UserError(f"a train of the share {share} of a queue: use a share in (0, 1]")
        self._share = share

    def rows(self, view: View, operator: int) -> int | None:
        """The share of the tuples that wait now, at least one; if none waits yet, all that will have come."""
        waiting = view.operators[operator].pending
        return max(1, math.ceil(self._share * waiting)) if waiting else None


class TimeQuantum:
    """As many tuples as can be processed within a time according to the measured costs; at least one.

    The overhead of the step is not included: it is the same for one tuple and for many.

    With a box at a time, tuples go only to the next queue: then ``to_output=False`` counts that one operator.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); _ = view.add("q", [(1.0, 0.5), (2.0, 1.0)])
    >>> TimeQuantum(10.0).rows(view, 0), TimeQuantum(10.0, to_output=False).rows(view, 0)
    (5, 10)
    """

    def __init__(self, seconds: float, *, to_output: bool = True) -> None:
        if not seconds > 0.0:
            raise UserError(f"a time quantum of {seconds} s is empty: use more than 0")
        self._seconds, self._to_output = seconds, to_output
        self._costs = RestCosts()

    def rows(self, view: View, operator: int) -> int | None:
        """The number of tuples that fits into the quantum."""
        self._costs.ran()
        cost = self._costs.of(view, operator) if self._to_output else view.operators[operator].cost
        return None if cost <= 0.0 else max(1, int(self._seconds / cost))
