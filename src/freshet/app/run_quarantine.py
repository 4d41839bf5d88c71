"""Telling that a query of a run was quarantined, to whoever does not look at its meters."""

from __future__ import annotations

import logging
import threading
from typing import Final

from freshet.quality import Meters, QueryMeter
from freshet.spark.suspects import STAYS_OUT

LOOK: Final = 0.5
"""Seconds between looks."""

LOGGER: Final = logging.getLogger(__name__)
"""Gets a warning for each; where nobody set logging up, Python prints it to standard error."""


class QuarantineWatch:
    """A thread that warns once of each query that is quarantined, with the reason.

    Args:
        meters: Of the run.

    >>> meters = Meters(start=0.0)
    >>> meters.add_query("bad", now=0.0)
    >>> watch = QuarantineWatch(meters)
    >>> watch.look()
    []
    >>> LOGGER.disabled = True
    >>> meters.quarantine("bad", "it raised")
    >>> watch.look(), watch.look()
    (['bad'], [])
    >>> LOGGER.disabled = False
    """

    def __init__(self, meters: Meters) -> None:
        self._meters = meters
        self._told: dict[str, QueryMeter] = {}
        self._looking = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="freshet-quarantine", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, after a last look."""
        self._stop.set()
        self._thread.join()
        self.look()

    def _run(self) -> None:
        while not self._stop.wait(LOOK):
            self.look()

    def look(self) -> list[str]:
        """Warns of the queries that were quarantined since the last look; returns their names."""
        with self._looking:
            # The engine goes on meanwhile: this is a copy made in one go, and a reason comes a moment after its state.
            meters = list(self._meters.queries.items())
            found = {name: meter for name, meter in meters if meter.state == "quarantined" and meter.reason}
            # A query that was dropped and added again has another meter, and is told again.
            new = {name: meter for name, meter in found.items() if self._told.get(name) is not meter}
            self._told = found
        for name, meter in new.items():
            reason = str(meter.reason).splitlines()[0]
            again = "" if reason.endswith(STAYS_OUT) else "; the next run tries it again"
            LOGGER.warning("query %s is quarantined: %s (the others go on%s)", name, reason, again)
        return list(new)
