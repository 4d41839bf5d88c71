"""Shares of time: how busy the workers are, and how much time goes into deciding."""

from __future__ import annotations

from collections.abc import Iterable

from freshet.model.scheduling.unit import NOTHING_KEPT, KeptCounts


class WorkerMeter:
    """Share of the workers' time in which they ran units.

    Args:
        start: When the workers became available.
        workers: Number of workers.

    >>> meter = WorkerMeter(start=0.0, workers=2)
    >>> meter.busy(seconds=3.0)
    >>> meter.share(now=10.0), meter.share(now=10.0, running=[5.0])
    (0.15, 0.4)
    """

    __slots__ = ("kept", "seconds", "start", "units", "workers")

    def __init__(self, start: float, workers: int = 1) -> None:
        self.start = start
        self.workers = workers
        self.units = 0
        self.kept = NOTHING_KEPT
        self.seconds = 0.0

    def busy(self, seconds: float, kept: KeptCounts = NOTHING_KEPT) -> None:
        """Records that a worker ran a unit for this long, and what it had kept of the states that the unit needed."""
        self.units += 1
        self.seconds += seconds
        if kept is not NOTHING_KEPT:
            self.kept = self.kept.plus(kept)

    def share(self, now: float, running: Iterable[float] = ()) -> float:
        """Share since the start; ``running`` are the start times of the units that are running."""
        available = (now - self.start) * self.workers
        if available <= 0.0:
            return 0.0
        return min(1.0, (self.seconds + sum(max(0.0, now - begun) for begun in running)) / available)


class DecisionMeter:
    """Share of time spent deciding what to run next.

    >>> meter = DecisionMeter(start=0.0)
    >>> meter.decided(seconds=0.25)
    >>> meter.share(now=10.0), meter.decisions
    (0.025, 1)
    """

    __slots__ = ("decisions", "seconds", "start")

    def __init__(self, start: float) -> None:
        self.start = start
        self.decisions = 0
        self.seconds = 0.0

    def decided(self, seconds: float) -> None:
        """Records that one decision took this long."""
        self.decisions += 1
        self.seconds += seconds

    def share(self, now: float) -> float:
        """Share since the start."""
        passed = now - self.start
        return min(1.0, self.seconds / passed) if passed > 0.0 else 0.0
