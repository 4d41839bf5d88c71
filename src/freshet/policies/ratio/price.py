"""Prices of a step: what its overhead counts for when a set of queries is chosen."""

from __future__ import annotations

import math
from typing import Protocol

from freshet.model import View


class Price(Protocol):
    """The o' of the set step: with 0 queries run one by one, with much they run together."""

    def seconds(self, view: View) -> float:
        """Seconds of work that a step must be worth before it begins."""

    def took(self, view: View, work: float) -> None:
        """A step with so many seconds of work was chosen."""


class FixedPrice:
    """Always the same; 0 is the world of the papers.

    >>> FixedPrice(0.02).seconds(view=None)
    0.02
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    def seconds(self, view: View) -> float:
        return self._seconds

    def took(self, view: View, work: float) -> None:
        """Nothing to learn."""


class OverheadPrice:
    """The overhead of a step as measured so far: right for a backlog to which nothing is added."""

    def seconds(self, view: View) -> float:
        return view.overhead()

    def took(self, view: View, work: float) -> None:
        """Nothing to learn."""


class LoadPrice:
    """The overhead over (1 - load): a second that a step costs delays all that arrives until the backlog is gone.

    The load is the work of the chosen steps per second and worker, which in a steady state is the share of all workers'
    time that the arriving work takes; what was chosen t seconds ago counts by exp(-t / span). It knows nothing of the
    overhead that steps themselves cost, so it is too cheap where that is much: see :class:`BusyPrice`.

    Args:
        span: Seconds over which the load is learned; some dozens of steps.
        most: Highest load to believe in, so that the price stays finite.
    """

    def __init__(self, span: float = 10.0, most: float = 0.98) -> None:
        self._span, self._most = span, most
        self._start: float | None = None
        self._at = 0.0
        self._work = 0.0

    def load(self, view: View) -> float:
        """Seconds taken per second of every worker, as learned so far."""
        if self._start is None or view.now <= self._start:
            return 0.0
        gathered = -math.expm1((self._start - view.now) / self._span) * self._span
        return self._work * math.exp((self._at - view.now) / self._span) / (gathered * view.workers)

    def seconds(self, view: View) -> float:
        return view.overhead() / (1.0 - min(self._most, self.load(view)))

    def took(self, view: View, work: float) -> None:
        if self._start is None:
            self._start = self._at = view.now
        self._work = self._work * math.exp((self._at - view.now) / self._span) + work
        self._at = view.now


class BusyPrice(LoadPrice):
    """The overhead over (1 - busy share): as :class:`LoadPrice`, with the steps' overhead counted as load.

    While workers have idle time, small steps are cheap and outputs are fresh early; as soon as small steps use the
    idle time up, the price rises and steps grow until there is some again. Of the prices tried in steady state
    (``freshet bench set-step``) it is the one that stays close to the better of both extremes everywhere.
    """

    def took(self, view: View, work: float) -> None:
        super().took(view, work + view.overhead())
