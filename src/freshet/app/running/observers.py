"""Observers of a run's engine: one has queries share work, one keeps decisions, one warns of trouble, and one guards
the run against observers of the user's."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from freshet.app.running.installing import Installer
from freshet.engine import Engine
from freshet.engine.events import Added, Committed, Decided, Dropped, Event, Observer, Quarantined
from freshet.policies import Reason
from freshet.spark.driver.suspects import STAYS_OUT

LOGGER: Final = logging.getLogger(__name__)
"""Warns of each query that is quarantined; if nobody set logging up, Python prints it to standard error."""

_FIRST_LOOK: Final = 1.0
"""Seconds until the first look, so that something has been measured. Later looks come ever more seldom."""
_LOOKS: Final = 6


class Resharing:
    """An observer that has running queries share what is worth it, after queries have come or gone.

    Queries can change only while they are at the same tuple, with nothing between their operators. The observer looks
    a few times whether they do, ever more seldom. For a change the engine comes to rest for a moment.
    """

    def __init__(self, engine: Engine, installer: Installer) -> None:
        self._engine, self._installer = engine, installer
        self._looks = _LOOKS
        self._next = 0.0

    def tell(self, event: Event) -> None:
        """Something happened."""
        if isinstance(event, Added | Dropped):
            self._looks, self._next = 0, event.now + _FIRST_LOOK
        elif isinstance(event, Committed) and self._looks < _LOOKS and event.now >= self._next:
            self._next = event.now + _FIRST_LOOK * 2**self._looks
            self._looks += 1
            self._engine.call(self._look)

    def _look(self) -> None:
        if self._installer.rearranged() is not None:
            self._engine.at_rest(self._installer.rearrange)


class DecisionKeeper:
    """An observer that keeps the latest decisions that run something, each with its moment and its reason.

    If decisions come fast, it leaves some out: asking for reasons takes at most a hundredth of the time.
    """

    def __init__(self, stopwatch: Callable[[], float] = time.perf_counter) -> None:
        self.latest: deque[tuple[float, Reason]] = deque(maxlen=100)
        self._stopwatch, self._next = stopwatch, -math.inf

    def tell(self, event: Event) -> None:
        """Something happened."""
        if isinstance(event, Decided) and event.decision.actions and event.now >= self._next:
            began = self._stopwatch()
            self.latest.append((event.now, event.why()))
            self._next = event.now + 100.0 * (self._stopwatch() - began)


class QuarantineTeller:
    """An observer of an engine that warns of each query that is quarantined, with the reason.

    >>> LOGGER.disabled = True
    >>> QuarantineTeller().tell(Quarantined(0.0, "bad", "it raised"))
    >>> LOGGER.disabled = False
    """

    def tell(self, event: Event) -> None:
        """Something happened."""
        if isinstance(event, Quarantined):
            reason = event.reason.splitlines()[0]
            again = "" if reason.endswith(STAYS_OUT) else "; the next run tries it again"
            LOGGER.warning("query %s is quarantined: %s (the others continue%s)", event.query, reason, again)


class Guarded:
    """Tells an observer of the user's. One that raises hears nothing more, and the run goes on.

    >>> LOGGER.disabled = True
    >>> class Broken:
    ...     def tell(self, event): raise ValueError("no")
    >>> guarded = Guarded(Broken())
    >>> guarded.tell(Event(0.0)); guarded.raised
    True
    >>> LOGGER.disabled = False
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.raised = False

    def tell(self, event: Event) -> None:
        """Something happened."""
        if self.raised:
            return
        try:
            self._observer.tell(event)
        except Exception:
            self.raised = True
            name = type(self._observer).__name__
            LOGGER.warning("observer %s raised, and is told nothing more", name, exc_info=True)
