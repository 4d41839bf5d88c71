"""Prices of a step: how much its overhead counts when a set of queries is chosen."""

from __future__ import annotations

import math
from typing import Protocol

from freshet.model import View


class Price(Protocol):
    """The o' of the set step: at price 0 queries run one by one, at a high price they run together."""

    def seconds(self, view: View) -> float:
        """Seconds of work that a step must be worth before it begins."""

    def took(self, view: View, work: float) -> None:
        """A step was chosen that has ``work`` seconds of work."""


class FixedPrice:
    """A constant price; the papers assume 0.

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
    """The measured overhead of a step: the right price for a backlog that nothing is added to."""

    def seconds(self, view: View) -> float:
        return view.overhead()

    def took(self, view: View, work: float) -> None:
        """Nothing to learn."""


class LoadPrice:
    """The overhead over (1 - load): a second that a step costs delays all that arrives until the backlog is gone.

    The load is the work of the chosen steps per second and worker. In a steady state that is the share of all workers'
    time that the arriving work takes. A step of t seconds ago counts by the factor exp(-t / span). The load leaves out
    the overhead of the steps themselves, so the price is too low if that overhead is high: see :class:`BusyPrice`.

    Args:
        span: Seconds over which the load is learned; some dozens of steps.
        most: Maximum load to assume, so that the price stays finite.
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

    While workers have idle time, small steps are cheap and outputs are fresh early. Once small steps use up the idle
    time, the price rises, and steps grow until there is idle time again. Of the prices that ``freshet bench set-step``
    tries in steady state, only this one stays close to the better of both extremes everywhere.
    """

    def took(self, view: View, work: float) -> None:
        super().took(view, work + view.overhead())
