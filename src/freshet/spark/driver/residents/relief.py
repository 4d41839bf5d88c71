"""Relief: a job that has waited for a slot for a while gets that of a resident."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from pyspark import SparkContext

from freshet.spark.driver.residents.scheduler import running_of

_PATIENCE: Final = 1.0
"""Seconds that a job may wait without a task; also the time between two looks."""

_MOMENT: Final = 0.2


class Relief:
    """Watches jobs that run while residents hold slots.

    Args:
        context: Where they run.
        drain: Is called when a job waits in vain; the watching thread calls it.
    """

    def __init__(self, context: SparkContext, drain: Callable[[], None]) -> None:
        self._context, self._drain = context, drain
        self._changed = threading.Condition()
        self._since: dict[str, float] = {}
        """When the jobs of a group began to wait."""
        self._closing = False
        threading.Thread(target=self._watch, name="freshet-relief", daemon=True).start()

    @contextmanager
    def watch(self, group: str) -> Iterator[None]:
        """Watches the jobs of a group."""
        with self._changed:
            self._since[group] = time.monotonic()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._since.pop(group, None)

    def close(self) -> None:
        """Watches no longer."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._since or self._closing)
                if self._closing:
                    return
                self._changed.wait(_PATIENCE)
                late = time.monotonic() - _PATIENCE
                waiting = [group for group, since in self._since.items() if since <= late]
            for group in waiting:
                with suppress(Exception):  # a Spark that is gone is found by those who run the job
                    self._look(group)

    def _look(self, group: str) -> None:
        if self._is_waiting(group):
            self._drain()
            return
        with self._changed:
            if group in self._since:
                self._since[group] = time.monotonic()

    def _is_waiting(self, group: str) -> bool:
        """Looks twice: between two stages a job has no task for a moment."""
        if running_of(self._context, group) != 0:
            return False
        time.sleep(_MOMENT)
        return running_of(self._context, group) == 0
