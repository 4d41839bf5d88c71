"""What polls have told of each element's change rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.learning.drift import DriftTest
from freshet.mirror.learning.equation import solve_rates
from freshet.mirror.learning.intervals import CLASSES, Seen, sort_in
from freshet.mirror.learning.prior import RatePrior, fit_prior

Floats = NDArray[np.float64]

_CHANGES: Final = ("changes", "changes_2", "changes_3")
_TIMES: Final = ("changed_time", "changed_time_2", "changed_time_3")
"""Classes of intervals that ended with a change. Older versions kept one class, under the first name."""
_PLAIN: Final = ("last", "quiet_time", "dated", "trust", "faster", "slower", "believed")
_COLUMNS: Final = (*_PLAIN, *_CHANGES, *_TIMES)
_LAST, _QUIET, _DATED, _TRUST, _FASTER, _SLOWER, _BELIEVED = range(len(_PLAIN))
_CLASSES: Final = slice(len(_PLAIN), None)
"""Rows of the table that hold the counts of all classes, then their times."""
_ROOM: Final = 16
"""Rows that are added at least, so that single elements do not copy the arrays each time."""


_DISTRUST: Final = 0.1
"""Weight of the common prior for an element whose rate has changed: it is unlike the others."""
_ASSUMED: Final = 2.0
"""How firm a rate is that was given, in changes."""
_FIRM: Final = 3.0
"""How firm a belief must be to be tested, and how firm that in a new rate is after a drift, in changes."""


class Learner:
    """Keeps for each element how many polls found a change, and how much time passed with and without (CAR §6.2.3).

    A poll says only whether something has changed since the last one, so several changes count once, and changes over
    time underestimate the rate. The estimate is the rate with the greatest likelihood, with a prior that stands for
    elements of which little is known. Intervals that ended with a change are kept in three classes of like length, so a
    long pause, which says next to nothing, leaves the others as they were. A known time of the last change
    (Last-Modified) counts as a change seen exactly. Old polls count less: each poll of an element takes the share
    1 / memory from the weight of its earlier ones, and everything once polls contradict them (see
    :class:`~freshet.mirror.learning.drift.DriftTest`).

    Args:
        count: Number of elements.
        prior: Belief before the first poll.
        memory: Number of polls that count; None remembers everything.
        drifts: Whether to test each poll for a drift of the rate.

    >>> learner = Learner(1, prior=RatePrior(mean=1.0, shape=0.5))
    >>> for second in range(100):
    ...     learner.polled(0, 2.0 * second, changed=second % 3 != 0)
    >>> learner.rates().round(2)
    array([0.54])
    """

    def __init__(
        self, count: int = 0, *, prior: RatePrior | None = None, memory: float | None = 50.0, drifts: bool = True
    ) -> None:
        self.prior = prior or RatePrior(mean=1.0)
        self.drifts = 0
        """Number of times that the rate of an element had evidently changed."""
        self._drifts = drifts
        self._keep = 1.0 if memory is None else 1.0 - 1.0 / memory
        self._count = 0
        self._table = np.empty((len(_COLUMNS), 0))
        self.add(count)

    def __len__(self) -> int:
        return self._count

    def add(self, count: int) -> None:
        """Adds elements of which nothing is known; they have the next numbers."""
        wanted = self._count + count
        if wanted > self._table.shape[1]:
            grown = np.zeros((len(_COLUMNS), max(wanted, 2 * self._table.shape[1], _ROOM)))
            grown[_LAST], grown[_TRUST], grown[_BELIEVED] = np.nan, 1.0, np.nan
            grown[:, : self._count] = self._table[:, : self._count]
            self._table = grown
        self._count = wanted

    def assume(self, element: int, rate: float) -> None:
        """Begins with a change rate that somebody gave: as if a few changes had been seen at that rate.

        >>> learner = Learner(2)
        >>> learner.assume(1, 0.01)
        >>> learner.rates().round(3)
        array([1.  , 0.01])
        """
        self._table[_QUIET : _TRUST + 1, element] = _ASSUMED / rate, _ASSUMED, _DISTRUST

    def polled(self, element: int, now: float, changed: bool, last_modified: float | None = None) -> None:
        """Takes in the answer of a poll.

        Args:
            element: Number of the element.
            now: When it was polled, in seconds.
            changed: Whether it differs from what the poll before found; the first poll of an element has no say.
            last_modified: When it changed last, in the same seconds, if the element says so.
        """
        last = float(self._table[_LAST, element])
        passed = now - last
        if passed == 0.0:  # no time, no news
            return
        if last_modified is not None and last_modified > now:
            last_modified = None  # a clock that runs ahead says nothing
        if not passed > 0.0:  # never polled, or the clock went back
            self._table[_LAST, element] = now
            if last_modified is not None:
                self._table[_QUIET : _DATED + 1, element] += now - last_modified, 1.0
            return
        if self._drifts:
            self._test(element, passed, changed)
        self._table[_QUIET : _DATED + 1, element] *= self._keep
        self._table[_CLASSES, element] *= self._keep
        self._table[_LAST, element] = now
        if not changed:
            self._table[_QUIET, element] += passed
        elif last_modified is not None and last_modified >= last:
            self._table[_QUIET : _DATED + 1, element] += now - last_modified, 1.0
        else:
            classes = self._table[_CLASSES, element].tolist()
            counts, times = classes[:CLASSES], classes[CLASSES:]
            self.sort_in(counts, times, passed)
            self._table[_CLASSES, element] = counts + times

    def _test(self, element: int, passed: float, changed: bool) -> None:
        """Drops what is known of an element if its rate has evidently changed."""
        faster, slower, believed = self._table[_FASTER : _BELIEVED + 1, element].tolist()
        if believed != believed:
            return
        drift = DriftTest(faster, slower)
        factor = drift.saw(believed * passed, changed)
        self._table[_FASTER : _SLOWER + 1, element] = drift.faster, drift.slower
        if factor != 1.0:
            # As if a few changes had been seen at the new rate, and nothing before.
            rate = factor * believed
            self._table[_QUIET : _BELIEVED + 1, element] = _FIRM / rate, _FIRM, _DISTRUST, 0.0, 0.0, rate
            self._table[_CLASSES, element] = 0.0
            self.drifts += 1

    def rates(self) -> Floats:
        """Estimated changes per second of each element."""
        seen = self._seen(slice(self._count))
        rates = self.estimate(seen)
        # A rate that only the prior speaks for cannot be contradicted.
        told = self.evidence() + seen.quiet_time * rates >= _FIRM
        self._table[_BELIEVED, : self._count] = np.where(told, rates, np.nan)
        return rates

    def _seen(self, elements: slice) -> Seen:
        table = self._table[:, elements]
        changes, times = np.split(table[_CLASSES], 2)
        return Seen(changes, times, table[_QUIET], table[_DATED], table[_TRUST])

    def rate(self, element: int) -> float:
        """Estimated changes per second of one element."""
        return float(self.estimate(self._seen(slice(element, element + 1)))[0])

    def last_poll(self, element: int) -> float | None:
        """When an element was polled last; None if it never was."""
        last = float(self._table[_LAST, element])
        return None if last != last else last

    def fit_prior(self) -> None:
        """Makes what was learned of most elements the belief about those of which little is known."""
        self.prior = fit_prior(self._seen(slice(self._count)), before=self.prior)

    def last_polls(self) -> Floats:
        """When each element was polled last; not a number for those that never were."""
        return self._table[_LAST, : self._count].copy()

    def evidence(self) -> Floats:
        """How many changes the estimate of each element rests on, old ones counted less."""
        seen = self._seen(slice(self._count))
        return np.asarray(seen.changes.sum(axis=0) + seen.dated)

    def state(self) -> dict[str, Any]:
        """What was learned, as arrays by name; :meth:`restore` takes it back."""
        columns = {name: self._table[row, : self._count].copy() for row, name in enumerate(_COLUMNS)}
        return {"prior": [self.prior.mean, self.prior.shape], **columns}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes back what :meth:`state` gave, possibly in another process or an older version."""
        self.prior = RatePrior(*state["prior"])
        self._count = len(state["last"])
        none = np.zeros(self._count)
        self._table = np.array([np.asarray(state.get(name, none), dtype=np.float64) for name in _COLUMNS])

    def sort_in(self, counts: list[float], times: list[float], length: float) -> None:
        """Adds an interval that ended with a change to the classes of its element, in place."""
        sort_in(counts, times, length)

    def estimate(self, seen: Seen) -> Floats:
        """Rates from what was seen."""
        exact, quiet = seen.dated + seen.trust * self.prior.shape, seen.quiet_time + seen.trust * self.prior.seconds
        return solve_rates(exact, quiet, seen.changes, seen.gaps)
