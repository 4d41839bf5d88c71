"""The size of a schedule, chosen by itself: long enough to pay for its decision, and no longer."""

from __future__ import annotations

from typing import Final

from freshet.model import View

SHARE: Final = 0.09
"""Share of the time that deciding may take. Set on the cells of CAR Fig. 4.6, 4.14 and 4.15."""
LEAST: Final = 0.02
"""Share of the time that deciding may take even if there is no idle time."""
_WEIGHT: Final = 0.02
"""How much the latest decision or step counts in the means: they go back over some fifty of them."""
_KEPT: Final = 0.95
"""How much of the time before the latest decision counts beside the time after it: it goes back over some twenty."""


class ScheduleSize:
    """Chooses N by what decisions and steps were measured to take, and by the load (CAR §4.4.1).

    A small N looks often, and so serves what is urgent now; a large N decides rarely, and so leaves more time for work.
    Deciding that takes a small share of the time, and no more than is idle, costs little. So N is the least one with
    which deciding takes at most :data:`SHARE` of the time and at most half of what work leaves: with a decision of D
    and steps of s seconds, N s / (D + N s) is 1 - share. Under overload nothing is idle, and N grows until what is
    ready fits into one schedule.

    >>> from freshet.simulation.view import RecordView
    >>> view, size = RecordView(), ScheduleSize()
    >>> size.choose(view)
    1
    >>> view.now, view.deciding = 0.005, 0.004  # a decision of 4 ms and a step of 1 ms
    >>> size.ran(view)
    >>> size.choose(view)
    40
    """

    __slots__ = ("_deciding", "_fresh", "_off_work", "_since", "_step", "_working")

    def __init__(self) -> None:
        self._deciding: float | None = None
        self._step: float | None = None
        self._since: float | None = None
        self._off_work = 0.0
        """Seconds of late that were idle or went into deciding."""
        self._working = 0.0
        """Seconds of late that went into steps."""
        self._fresh = False
        """Whether no step has run since the latest decision."""

    def choose(self, view: View) -> int:
        """N for a decision that is made now."""
        idle = 0.0 if self._since is None else view.now - self._since
        self._off_work = _KEPT * (self._off_work + idle)
        self._working *= _KEPT
        self._since, self._fresh = view.now, True
        if self._deciding is None or not self._step:
            return 1
        left = self._off_work / (self._off_work + self._working)
        share = max(LEAST, min(SHARE, left / 2))
        return max(1, round(self._deciding * (1.0 - share) / (share * self._step)))

    def ran(self, view: View) -> None:
        """A step of the schedule has just ended."""
        seconds = view.now - (self._since or 0.0)
        if self._fresh:
            seconds = max(0.0, seconds - view.deciding)
            self._off_work += view.deciding
            self._deciding = _moved(self._deciding, view.deciding)
        self._since, self._fresh = view.now, False
        self._working += seconds
        self._step = _moved(self._step, seconds)


def _moved(mean: float | None, value: float) -> float:
    return value if mean is None else mean + _WEIGHT * (value - mean)
