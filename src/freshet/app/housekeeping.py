"""What has to be done now and then while an application runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from freshet.app.report import write
from freshet.log import Log

REPORT: Final = 1.0
"""Seconds between reports."""
COLLECT: Final = 3.0
"""Seconds between collections of what retention no longer keeps."""

_LOGGER: Final = logging.getLogger(__name__)


class Housekeeping:
    """A thread that collects what the log need not keep, and refreshes the report.

    Args:
        log: To collect in.
        report: Makes the report.
        path: Where the report goes; None: nowhere.
    """

    def __init__(self, log: Log, report: Callable[[], Mapping[str, Any]], path: Path | None) -> None:
        self._log, self._report, self._path = log, report, path
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="freshet-housekeeping", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        collected = time.monotonic()
        while not self._stop.wait(REPORT):
            self._try(self.write)
            if time.monotonic() - collected >= COLLECT:
                self._try(self._log.collect)
                collected = time.monotonic()

    def _try(self, work: Callable[[], object]) -> None:
        """A full disk is no reason to end: the next round tries again."""
        try:
            work()
        except Exception as error:
            _LOGGER.warning("housekeeping: %s", error)

    def write(self) -> None:
        """Writes the report now."""
        if self._path is not None:
            write(self._report(), self._path)
