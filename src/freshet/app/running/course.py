"""Writes the history of a run beside its report, now and then and at the end."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from freshet.app.reports.report import history_path, write

if TYPE_CHECKING:
    from freshet.app.running.run_parts import Parts
    from freshet.quality.history import HistoryRecord

HISTORY: Final = 15.0
"""Seconds between writes of the history."""


class CourseWriter:
    """Makes the record of a run's history, and writes it: that takes at most a hundredth of the time.

    Args:
        app: Name of the application.
        report: File of its report; None: nothing is written.
    """

    def __init__(self, app: str, parts: Parts, report: Path | None) -> None:
        self._app, self._parts, self._report = app, parts, report
        self._due = -math.inf

    def record(self) -> HistoryRecord:
        """What has been kept so far."""
        parts, workers = self._parts, self._parts.engine.executor.slots
        make = parts.loop.ask(lambda: parts.history.record(self._app, parts.policy, workers, real=True))
        record = make()
        if (told := parts.judgement.told) is not None:
            record["feasible"] = told
        return record

    def write(self) -> None:
        """Writes it, unless the last time was too expensive to be repeated already."""
        began = time.monotonic()
        if self._report is not None and began >= self._due:
            write(self.record(), history_path(self._report), indent=None)
            self._due = began + 100.0 * (time.monotonic() - began)

    def finish(self) -> None:
        """Takes a last sample, and writes everything."""
        if self._report is not None:
            parts, self._due = self._parts, -math.inf
            parts.loop.ask(lambda: parts.history.take(parts.engine.clock.now()))
            self.write()
