"""The size of a schedule, chosen by itself: long enough to pay for its decision, and no longer."""

from __future__ import annotations

from typing import Final

from freshet.model import View

SHARE: Final = 0.09
"""Share of the time that deciding may take. Set on the cells of CAR Fig. 4.6, 4.14 and 4.15."""
_WEIGHT: Final = 0.02
"""How much the latest decision or step counts in the means: they go back over some fifty of them."""


class ScheduleSize:
    """Chooses N by what decisions and steps were measured to take (CAR §4.4.1).

    A small N looks often, and so serves what is urgent now; a large N decides rarely, and so leaves more time for work.
    Deciding that takes a small share of the time costs little. So N is the least one with which deciding takes at most
    :data:`SHARE` of the time: with a decision of D and steps of s seconds, N s / (D + N s) is 1 - share.

    >>> from freshet.simulation.view import RecordView
    >>> view, size = RecordView(), ScheduleSize()
    >>> size.choose(view)
    1
    >>> view.now, view.deciding = 0.005, 0.004  # a decision of 4 ms and a step of 1 ms
    >>> size.ran(view)
    >>> size.choose(view)
    40
    """

    __slots__ = ("_deciding", "_fresh", "_since", "_step")

    def __init__(self) -> None:
        self._deciding: float | None = None
        self._step: float | None = None
        self._since = 0.0
        self._fresh = False
        """Whether no step has run since the latest decision."""

    def choose(self, view: View) -> int:
        """N for a decision that is made now."""
        self._since, self._fresh = view.now, True
        if self._deciding is None or not self._step:
            return 1
        return max(1, round(self._deciding * (1.0 - SHARE) / (SHARE * self._step)))

    def ran(self, view: View) -> None:
        """A step of the schedule has just ended."""
        seconds = view.now - self._since
        if self._fresh:
            seconds = max(0.0, seconds - view.deciding)
            self._deciding = _moved(self._deciding, view.deciding)
        self._since, self._fresh = view.now, False
        self._step = _moved(self._step, seconds)


def _moved(mean: float | None, value: float) -> float:
    return value if mean is None else mean + _WEIGHT * (value - mean)
