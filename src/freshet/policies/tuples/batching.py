"""Batches: which of the waiting tuples form one job (WU §4.8)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from freshet.model import UserError, View

ALPHA: Final = 0.9
BETA: Final = 4.0
_LOOK_AGAIN: Final = 32
"""Number of batches after which the mean laxity is worked out again."""


@dataclass(slots=True)
class _Batch:
    """A batch at the head of a queue, so that no tuple is looked at twice.

    Args:
        end: Number of tuples that had come to the queue with the last of the batch.
        latest: When its last tuple may expire.
        last: When the last one so far expires.
        closed: Whether a tuple has come that does not belong to it.
    """

    end: int
    latest: float
    last: float
    closed: bool = False


class IntelligentBatches:
    """Tuples from the head of a queue on, as long as they belong together (WU §4.8): from the first to the last of them
    expiries differ by at most ``alpha`` times the mean laxity of what waits, and from each to the next by at most
    ``beta`` times the mean gap of the queue. Expiries differ as timestamps do, but also tell streams apart.

    So a batch is short where tuples are urgent, and ends where a burst ends.

    Args:
        alpha: Of the length of a batch.
        beta: Of the gap at which it ends.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(now=9.0); (operator,) = view.add("q", [(1.0, 1.0)]); view.ready[operator] = None
    >>> queue = view.operators[operator]
    >>> queue.expiries = [10.0, 10.1, 10.2, 10.8, 10.95]; queue.pending = queue.came = 5
    >>> IntelligentBatches().rows(view, operator)
    4
    """

    def __init__(self, alpha: float = ALPHA, beta: float = BETA) -> None:
        if not (alpha > 0.0 and beta > 0.0):
            raise UserError(f"batches of alpha {alpha} and beta {beta} would be empty: use numbers above 0")
        self._alpha, self._beta = alpha, beta
        self._first: dict[int, tuple[float, int]] = {}
        """When each queue was first looked at, and how many tuples had come there."""
        self._open: dict[int, _Batch] = {}
        self._laxity, self._left = 0.0, 0
        self.operations = 0
        """Looks at tuples and queues."""

    def rows(self, view: View, operator: int) -> int | None:
        """The length of the batch at the head of a queue."""
        queue = view.operators[operator]
        pending, head = queue.pending, queue.came - queue.pending
        batch = self._open.get(operator)
        if batch is None or batch.end <= head:
            self._first.setdefault(operator, (view.now, queue.came))
            first = queue.expiry()
            batch = self._open[operator] = _Batch(head + 1, first + self._alpha * self._mean_laxity(view), first)
            self.operations += 1
        rows = batch.end - head
        if not batch.closed and rows < pending:
            gap = self._beta * self._gap(view, operator)
            while rows < pending:
                expiry = queue.expiry(rows)
                self.operations += 1
                if expiry > batch.latest or expiry - batch.last > gap:
                    batch.closed = True
                    break
                batch.last, rows = expiry, rows + 1
            batch.end = head + rows
        return rows

    def _gap(self, view: View, operator: int) -> float:
        """Mean seconds from a tuple of a queue to the next; infinity as long as nobody knows."""
        came = view.operators[operator].came
        since, before = self._first[operator]
        return (view.now - since) / (came - before) if came > before and view.now > since else math.inf

    def _mean_laxity(self, view: View) -> float:
        """Mean seconds until the first tuples of the queues expire, of those that are still in time."""
        if not self._left:
            self._left = _LOOK_AGAIN
            rests = [view.operators[number].expiry() - view.now for number in view.ready]
            rests = [rest for rest in rests if 0.0 < rest < math.inf]
            self._laxity = sum(rests) / len(rests) if rests else math.inf
            self.operations += len(view.ready)
        self._left -= 1
        return self._laxity


class IntervalBatches:
    """Tuples that expire within a fixed time from the first of them.

    >>> from freshet.simulation.view import RecordView
    >>> view = RecordView(); (operator,) = view.add("q", [(1.0, 1.0)])
    >>> view.operators[operator].expiries = [10.0, 10.1, 10.4]; view.operators[operator].pending = 3
    >>> IntervalBatches(0.25).rows(view, operator)
    2
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0.0:
            raise UserError(f"batches of {seconds} s are empty: use more than 0")
        self._seconds = seconds
        self.operations = 0

    def rows(self, view: View, operator: int) -> int | None:
        """The number of tuples in the interval."""
        queue = view.operators[operator]
        latest, low, high = queue.expiry() + self._seconds, 1, max(1, queue.pending)
        while low < high:
            middle = (low + high + 1) // 2
            self.operations += 1
            if queue.expiry(middle - 1) <= latest:
                low = middle
            else:
                high = middle - 1
        return low
