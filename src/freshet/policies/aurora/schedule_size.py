"""The size of a schedule, chosen by itself: enough work to pay for its decision, and no more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from freshet.model import View

SHARE: Final = 0.05
"""Share of the time that deciding may take. Set on the cells of CAR Fig. 4.14 and 4.15."""
LEAST: Final = 0.02
"""The same for policies that choose N beforehand, if there is no idle time."""
_WEIGHT: Final = 0.02
"""How much the latest decision or step counts in the means: they go back over some fifty of them."""
_KEPT: Final = 0.95
"""How much of the time before the latest decision counts beside the time after it: it goes back over some twenty."""


class ScheduleSize:
    """Chooses N by what a decision takes and by how long steps take (CAR §4.4.1).

    A small N looks often, and so serves what is urgent now; a large N decides rarely, and so leaves more time for work.
    Deciding that takes a small share of the time costs little. So N is the least one with which it takes at most
    :data:`SHARE`.

    A policy that ranks all that is ready pays for that whatever N is. It asks afterwards (:meth:`after`): a schedule
    ends as soon as its steps are expected to take 19 times as long as its decision. Seconds count there, not the number
    of steps. Under overload queues grow, and steps with them: as many steps as before would last ever longer, while
    what comes meanwhile is late before it is looked at. A decision is expected to take what the latest ones took for
    each operation that they counted, because it takes far longer when more operators are ready.

    A policy that pays for each operator that it chooses asks beforehand (:meth:`before`). For it N is the least one
    that keeps to the share by the mean of its decisions and steps, and that takes at most half of the time that work
    leaves.

    >>> from freshet.simulation.view import RecordView
    >>> view, size = RecordView(), ScheduleSize()
    >>> size.after(view, 100, [0.001] * 50)  # nothing is known yet
    1
    >>> view.now, view.deciding = 0.002, 0.001  # a decision and a step of 1 ms each
    >>> size.ran(view)
    >>> size.after(view, 100, [0.001] * 50)
    19
    >>> size.after(view, 200, [0.001] * 50)  # twice as many operations
    38
    >>> size.after(view, 100, [0.009, 0.020, 0.020])  # long queues
    2
    """

    __slots__ = ("_decision", "_fresh", "_off_work", "_operation", "_operations", "_since", "_step", "_working")

    def __init__(self) -> None:
        self._decision: float | None = None
        self._operation: float | None = None
        """Seconds of deciding per operation."""
        self._step: float | None = None
        self._since: float | None = None
        self._operations = 0
        """Operations of the latest decision."""
        self._off_work = 0.0
        """Seconds of late that were idle or went into deciding."""
        self._working = 0.0
        """Seconds of late that went into steps."""
        self._fresh = False
        """Whether no step has run since the latest decision."""

    def before(self, view: View) -> int:
        """N for a decision that is made now."""
        self._begin(view)
        if self._decision is None or not self._step:
            return 1
        left = self._off_work / (self._off_work + self._working)
        return max(1, round(_work_for(self._decision, max(LEAST, min(SHARE, left / 2))) / self._step))

    def after(self, view: View, operations: int, seconds: Iterable[float]) -> int:
        """N for a decision that has just been made.

        Args:
            view: The state.
            operations: What the decision counted.
            seconds: What the steps are expected to take, best first; only those of the schedule are asked for.
        """
        self._begin(view)
        self._operations = operations
        if self._operation is None:
            return 1
        # All workers wait while one thread decides.
        wanted, count = _work_for(self._operation * operations, SHARE) * view.workers, 0
        for each in seconds:
            count += 1
            wanted -= each
            if wanted <= 1e-12:
                break
        return count

    def ran(self, view: View) -> None:
        """A step of the schedule has just ended."""
        seconds = view.now - (self._since or 0.0)
        if self._fresh:
            seconds = max(0.0, seconds - view.deciding)
            self._off_work += view.deciding
            self._decision = _moved(self._decision, view.deciding)
            if self._operations:
                self._operation = _moved(self._operation, view.deciding / self._operations)
        self._since, self._fresh = view.now, False
        self._working += seconds
        self._step = _moved(self._step, seconds)

    def _begin(self, view: View) -> None:
        idle = 0.0 if self._since is None else view.now - self._since
        self._off_work = _KEPT * (self._off_work + idle)
        self._working *= _KEPT
        self._since, self._fresh = view.now, True


def _work_for(decision: float, share: float) -> float:
    """Seconds of work beside which a decision takes a share of the time.

    >>> round(_work_for(0.01, 0.05), 6)
    0.19
    """
    return decision * (1.0 - share) / share


def _moved(mean: float | None, value: float) -> float:
    return value if mean is None else mean + _WEIGHT * (value - mean)
