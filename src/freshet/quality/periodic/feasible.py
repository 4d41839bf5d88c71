"""Whether periodic queries can all be in time, and at which level they can: demand by deadline (RT §4.3; CAR §4.6).

Queries release at multiples of their periods, so their first releases fall together. With the earliest deadline first
all are in time exactly if, for every deadline t, what is due by then takes at most t (J. Y.-T. Leung and M. L. Merrill,
"A note on preemptive scheduling of periodic, real-time tasks", 1980; S. K. Baruah et al., 1990).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.quality.periodic.refinement import largest_ratio

_DEADLINES: Final = 10_000
"""Maximum number of deadlines that are looked at; beyond them the share of the time says enough."""


@dataclass(frozen=True, slots=True)
class PeriodicLoad:
    """A periodic query as admission sees it.

    Args:
        name: Its name.
        seconds: Seconds that an instance takes, by its level, with the overhead of its step.
        period: Seconds between releases.
        deadline: Seconds after a release by which its answer is due.
    """

    name: str
    seconds: Callable[[float], float]
    period: float
    deadline: float

    def due_by(self, time: float) -> int:
        """Number of instances that are released at 0 or later and due by a time.

        >>> PeriodicLoad("q", lambda level: 1.0, 2.0, 1.0).due_by(3.0)
        2
        """
        return max(0, math.floor((time - self.deadline) / self.period + 1e-9) + 1)


class Fit(NamedTuple):
    """How periodic queries fit.

    Args:
        load: Share of the time that they take at level 1, blocking aside.
        level: Highest common level at which all are in time; 0: there is none.
        tightest: The time after common releases at which demand over time is the greatest at level 1.
        demand: Seconds that are due by then.
    """

    load: float
    level: float
    tightest: float
    demand: float


def fit(
    queries: Sequence[PeriodicLoad],
    *,
    blocking: float = 0.0,
    capacity: float = 1.0,
    of: PeriodicLoad | None = None,
) -> Fit:
    """How periodic queries fit, with the overhead of their steps and the blocking of a step that is running.

    Args:
        queries: All of them.
        blocking: Seconds for which a step that runs already may keep the others waiting.
        capacity: Seconds of work per second that they may take: what the reserve of continuous queries leaves.
        of: Only its deadlines must be kept; None: those of all. Work that is due later does not come before it.

    >>> half = [PeriodicLoad("a", lambda level: 0.4 * level, 1.0, 0.5)]
    >>> half += [PeriodicLoad("b", lambda level: 0.3 * level, 1.0, 0.5)]
    >>> found = fit(half)
    >>> round(found.load, 3), round(found.level, 3), found.tightest
    (0.7, 0.714, 0.5)
    >>> tight, easy = PeriodicLoad("t", lambda level: 0.2, 1.0, 0.1), PeriodicLoad("e", lambda level: 0.2, 1.0, 1.0)
    >>> [fit([tight, easy], of=each).level for each in (tight, easy)]
    [0.0, 1.0]
    """
    if not queries:
        return Fit(0.0, 1.0, 0.0, 0.0)
    times = _deadlines(queries, queries if of is None else [of])
    due = np.array([[query.due_by(time) for query in queries] for time in times])

    def demands(level: float) -> NDArray[np.float64]:
        """Seconds that are due by each time."""
        found: NDArray[np.float64] = blocking + due @ np.array([query.seconds(level) for query in queries])
        return found

    def need(level: float) -> float:
        """The greatest share of the time until any deadline, or in the long run, that the queries ask for."""
        long_run = sum(query.seconds(level) / query.period for query in queries)
        return max(long_run, float((demands(level) / times).max()))

    tightest = int((demands(1.0) / times).argmax())
    load = math.fsum(query.seconds(1.0) / query.period for query in queries)
    return Fit(load, largest_ratio(need, capacity), float(times[tightest]), float(demands(1.0)[tightest]))


def _deadlines(queries: Sequence[PeriodicLoad], of: Sequence[PeriodicLoad]) -> NDArray[np.float64]:
    """The deadlines of some queries until all releases fall together again, at most some thousands."""
    micros = [round(query.period * 1e6) for query in queries]
    end = math.lcm(*micros) / 1e6
    each = _DEADLINES // len(queries)
    found = {
        round(number * query.period + query.deadline, 9)
        for query in of
        for number in range(min(each, math.ceil(end / query.period)))
    }
    return np.array(sorted(found))
