"""Telling that a query of a run was quarantined, to whoever does not look at its meters."""

from __future__ import annotations

import logging
from typing import Final

from freshet.engine.events import Event, Quarantined
from freshet.spark.suspects import STAYS_OUT

LOGGER: Final = logging.getLogger(__name__)
"""Gets a warning for each; where nobody set logging up, Python prints it to standard error."""


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
