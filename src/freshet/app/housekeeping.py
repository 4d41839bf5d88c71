"""What has to be done now and then while an application runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

_LOGGER: Final = logging.getLogger(__name__)


class Rounds:
    """A thread that does something again and again, until it is stopped.

    Args:
        name: Of the thread.
        seconds: From one round to the next.
        work: What is done. Where it fails, as with a full disk, the next round tries again.
    """

    def __init__(self, name: str, seconds: float, work: Callable[[], object]) -> None:
        self._seconds, self._work = seconds, work
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, if it was started."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            try:
                self._work()
            except Exception as error:
                _LOGGER.warning("housekeeping: %s", error)
