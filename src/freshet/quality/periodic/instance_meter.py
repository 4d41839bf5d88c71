"""What became of a query's instances: quality, misses, lateness, and how good the predictions were."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from freshet.quality.histogram import Histogram
from freshet.quality.snapshots import MissSnapshot, PeriodicSnapshot

_MISSES: Final = 20
"""Number of misses of a query that are remembered."""


@dataclass(frozen=True, slots=True)
class InstanceFigures:
    """What became of an instance.

    Args:
        query: Its query.
        release: When it was released, in seconds.
        due: When its answer was due.
        finished: When its answer was committed; None: it was abandoned.
        quality: Of its answer, by what was kept (RT §5.2.2); 0 if it was late.
        level: That it was given.
        predicted: Seconds that it was expected to take at its level; None: nothing was predicted.
        took: Seconds that it took.
        waited: Seconds from its release until it began.
        sampling: Seconds of its sampler.
        ended_early: Whether less was read than planned because its time was over (RT §4.4).
        dropped: Share of its tuples that was left out, of the input that lost most.
        blocked_by: Seconds for which instances of other queries ran while it waited, if it was late.
        selectivity_error: Mean relative error of the selectivities that its sample gave; None: nothing was sampled.
    """

    query: str
    release: float
    due: float
    finished: float | None
    quality: float
    level: float = 1.0
    predicted: float | None = None
    took: float = 0.0
    waited: float = 0.0
    sampling: float = 0.0
    ended_early: bool = False
    selectivity_error: float | None = None
    dropped: float = 0.0
    blocked_by: Mapping[str, float] = field(default_factory=dict)

    @property
    def missed(self) -> bool:
        """Whether it was not answered in time."""
        return self.finished is None or self.finished > self.due

    @property
    def lateness(self) -> float:
        """Seconds by which its answer was late."""
        return 0.0 if self.finished is None else max(0.0, self.finished - self.due)

    @property
    def time_error(self) -> float | None:
        """Relative error of the predicted time."""
        return None if self.predicted is None or self.took <= 0.0 else abs(self.predicted - self.took) / self.took

    def miss(self) -> MissSnapshot:
        """Why it was late; JSON-ready."""
        return {
            "release": self.release,
            "late_s": None if self.finished is None else self.lateness,
            "waited_s": self.waited,
            "predicted_s": self.predicted,
            "took_s": self.took,
            "dropped": self.dropped,
            "blocked_by": dict(self.blocked_by),
        }


@dataclass(slots=True)
class InstanceMeter:
    """Counts what became of instances.

    >>> meter = InstanceMeter()
    >>> meter.add(InstanceFigures("q", 0.0, 1.0, 0.5, quality=0.8, predicted=0.22, took=0.2))
    >>> meter.add(InstanceFigures("q", 1.0, 2.0, 2.5, quality=0.0))
    >>> figures = meter.snapshot()
    >>> figures["quality"], figures["missed"], figures["lateness_s"], round(figures["time_error_p50"], 2)
    (0.4, 1, 0.5, 0.1)
    """

    instances: int = 0
    missed: int = 0
    abandoned: int = 0
    ended_early: int = 0
    level: float | None = None
    took: float = 0.0
    sampling: float = 0.0
    _quality: float = 0.0
    _squares: float = 0.0
    _late: int = 0
    _lateness: float = 0.0
    _errors: Histogram = field(default_factory=Histogram)
    _shares: Histogram = field(default_factory=Histogram)
    _misses: deque[MissSnapshot] = field(default_factory=lambda: deque(maxlen=_MISSES))

    def add(self, outcome: InstanceFigures) -> None:
        """Takes in an instance."""
        self.instances += 1
        self.missed += outcome.missed
        self.abandoned += outcome.finished is None
        self.ended_early += outcome.ended_early
        self.level = outcome.level
        self.took += outcome.took
        self.sampling += outcome.sampling
        if outcome.missed:
            self._misses.append(outcome.miss())
        self._quality += outcome.quality
        self._squares += outcome.quality**2
        if outcome.lateness > 0.0:
            self._late += 1
            self._lateness += outcome.lateness
        if outcome.time_error is not None:
            self._errors.add(np.array([outcome.time_error]))
        if outcome.selectivity_error is not None:
            self._shares.add(np.array([outcome.selectivity_error]))

    @property
    def quality(self) -> float | None:
        """Mean quality (RT Eq. 3)."""
        return self._quality / self.instances if self.instances else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the quality (RT Fig. 10b)."""
        mean = self.quality
        return None if mean is None else math.sqrt(max(0.0, self._squares / self.instances - mean * mean))

    def snapshot(self, skipped: int = 0) -> PeriodicSnapshot:
        """The figures; JSON-ready.

        Args:
            skipped: Number of releases that had no instance.
        """
        spent = self.took + self.sampling
        return {
            "instances": self.instances,
            "missed": self.missed,
            "skipped": skipped,
            "abandoned": self.abandoned,
            "ended_early": self.ended_early,
            "quality": self.quality,
            "deviation": self.deviation,
            "level": self.level,
            "lateness_s": self._lateness / self._late if self._late else None,
            "time_error_p50": _median(self._errors),
            "selectivity_error_p50": _median(self._shares),
            "sampling_share": self.sampling / spent if spent > 0.0 else None,
            "misses": list(self._misses),
        }


def _median(values: Histogram) -> float | None:
    return values.quantiles([0.5])[0] if values.counts.any() else None
