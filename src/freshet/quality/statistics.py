"""What operators and calls cost, learned from runs."""

from __future__ import annotations

from typing import Final

from freshet.model import OperatorRun
from freshet.quality.smoothing import Smoothed

_COLD: Final = 5
"""Number of first runs or calls that may be cold."""
_NEWEST: Final = 0.2
"""Share of the newest call."""


class OperatorStatistics:
    """Cost per tuple and selectivity of one operator, smoothed (RT §4.1.3), and its totals.

    Seconds are those for which a unit keeps its worker, as for its overhead: tasks that run side by side count once.
    A run counts by the tuples that it read (see :class:`~freshet.quality.smoothing.Smoothed`).

    The first runs are cold in each worker: they compile and fill caches, and a tuple may cost a thousand times as much
    as later. Such delays only add, so the cheapest of the first few runs is used. A first run that is dearer than
    assumed does not change :attr:`expected_cost` before a second one: a policy that puts off what is dear might never
    run the operator again, and so never learn better.

    Args:
        cost: Seconds per tuple to assume before the first run.
        selectivity: Tuples out per tuple in to assume before the first run.
        alpha: Share of the newest run.

    >>> filter_1 = OperatorStatistics()
    >>> filter_1.learned
    False
    >>> filter_1.add(OperatorRun(operator=0, rows_in=1000, rows_out=100, seconds=0.002))
    >>> filter_1.cost, filter_1.expected_cost, filter_1.selectivity, filter_1.rows_in
    (2e-06, 1e-06, 0.1, 1000)
    >>> filter_1.add(OperatorRun(operator=0, rows_in=1000, rows_out=100, seconds=0.003))
    >>> filter_1.cost, filter_1.expected_cost
    (2e-06, 2e-06)
    """

    __slots__ = (
        "_cost", "_fixed", "_lessons", "_selectivity", "expected_cost", "rows_in", "rows_out", "runs", "seconds",
    )  # fmt: skip

    def __init__(self, cost: float = 1e-6, selectivity: float = 1.0, alpha: float = 0.2) -> None:
        self._cost = Smoothed(alpha, cost)
        self._selectivity = Smoothed(alpha, selectivity)
        self._fixed = False
        self._lessons = 0
        """Runs with tuples."""
        self.expected_cost = cost
        """Seconds per tuple that the next run is expected to take."""
        self.runs = 0
        self.rows_in = 0
        self.rows_out = 0
        self.seconds = 0.0

    @classmethod
    def given(cls, cost: float, selectivity: float) -> OperatorStatistics:
        """Statistics that are known and do not change; runs add only to the totals.

        >>> known = OperatorStatistics.given(cost=1e-3, selectivity=0.5)
        >>> known.add(OperatorRun(0, rows_in=10, rows_out=10, seconds=1.0))
        >>> known.cost, known.selectivity, known.seconds
        (0.001, 0.5, 1.0)
        """
        statistics = cls(cost, selectivity)
        statistics._fixed = True
        return statistics

    @property
    def cost(self) -> float:
        """Seconds per tuple, as measured."""
        return self._cost.value

    @property
    def selectivity(self) -> float:
        """Tuples out per tuple in."""
        return self._selectivity.value

    @property
    def learned(self) -> bool:
        """Whether the values are more than an assumption: given, or seen in a run."""
        return self._fixed or self._cost.learned

    def add(self, run: OperatorRun) -> None:
        """Records a run of the operator."""
        rows_in = run.rows_in
        self.runs += 1
        self.seconds += run.seconds
        self.rows_in += rows_in
        self.rows_out += run.rows_out
        # An empty train says nothing about tuples.
        if rows_in and not self._fixed:
            self._learn(run.seconds / rows_in, rows_in)
            self._selectivity.observe(run.rows_out / rows_in, rows_in)

    def _learn(self, cost: float, rows: int) -> None:
        self._lessons += 1
        if self._lessons == 1 or self._lessons > _COLD:
            self._cost.observe(cost, rows)
        elif cost < self._cost.value:
            self._cost = Smoothed(self._cost.alpha)
            self._cost.observe(cost, rows)
        known = self._cost.value
        self.expected_cost = min(self.expected_cost, known) if self._lessons == 1 else known


class OverheadStatistics:
    """Seconds that a call (a step) costs before it touches a tuple, smoothed (RT §4.1.3); every call counts alike.

    The first calls are cold: they start processes, compile and fill caches, and may take a hundred times as long as all
    others. Such delays only add, so the minimum of the first few calls is used.

    >>> overhead = OverheadStatistics()
    >>> for seconds in (2.0, 0.03, 0.05, 0.03, 0.04):
    ...     overhead.add(seconds)
    >>> overhead.seconds, overhead.calls, round(overhead.total, 6)
    (0.03, 5, 2.15)
    >>> overhead.add(0.04); round(overhead.seconds, 6)
    0.032
    """

    __slots__ = ("_fixed", "calls", "seconds", "total")

    def __init__(self) -> None:
        self.seconds = 0.0
        """Seconds per call."""
        self.calls = 0
        self.total = 0.0
        self._fixed = False

    @classmethod
    def given(cls, seconds: float) -> OverheadStatistics:
        """An overhead that is known and does not change; calls add only to the totals.

        >>> known = OverheadStatistics.given(0.02)
        >>> known.add(0.5)
        >>> known.seconds, known.total
        (0.02, 0.5)
        """
        statistics = cls()
        statistics.seconds, statistics._fixed = seconds, True
        return statistics

    def add(self, seconds: float) -> None:
        """Records the overhead of a call."""
        self.calls += 1
        self.total += seconds
        if self._fixed:
            return
        if self.calls > _COLD:
            self.seconds += _NEWEST * (seconds - self.seconds)
        elif self.calls == 1 or seconds < self.seconds:
            self.seconds = seconds
