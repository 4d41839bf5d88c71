"""What a run does when its engine tells that something happened: queries share work, and a person hears of trouble."""

from __future__ import annotations

import logging
from typing import Final

from freshet.app.installing import Installer
from freshet.engine import Engine
from freshet.engine.events import Added, Committed, Dropped, Event, Quarantined
from freshet.spark.driver.suspects import STAYS_OUT

LOGGER: Final = logging.getLogger(__name__)
"""Warns of each query that is quarantined; where nobody set logging up, Python prints it to standard error."""

_FIRST_LOOK: Final = 1.0
"""Seconds after which it is looked at first: there should be something measured. Then ever more seldom."""
_LOOKS: Final = 6


class Resharing:
    """An observer that has running queries share what is worth it, when queries have come or gone.

    They change only where they stand at the same tuple with nothing between their operators. Whether they do is looked
    at a few times, ever more seldom; to change, the engine comes to rest for a moment.
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
            LOGGER.warning("query %s is quarantined: %s (the others go on%s)", event.query, reason, again)
