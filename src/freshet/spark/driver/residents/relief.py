"""Relief: a job that has waited for a slot for a while gets that of a resident, whoever has submitted it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from pyspark import SparkContext

from freshet.spark.driver.residents.scheduler import waiting_jobs

_LOGGER: Final = logging.getLogger(__name__)
_PATIENCE: Final = 1.0
"""Seconds between two looks: a job that has no task at both of them has waited for so long."""


class Relief:
    """Watches the jobs of a Spark in which residents hold slots.

    Args:
        context: Where they run.
        drain: Is called when a job waits in vain; the watching thread calls it.
    """

    def __init__(self, context: SparkContext, drain: Callable[[], None]) -> None:
        self._context, self._drain = context, drain
        self._closing = threading.Event()
        threading.Thread(target=self._watch, name="freshet-relief", daemon=True).start()

    def close(self) -> None:
        """Watches no longer."""
        self._closing.set()

    def _watch(self) -> None:
        waited = frozenset[int]()
        while not self._closing.wait(_PATIENCE):
            try:
                waiting = waiting_jobs(self._context)
            except Exception as error:  # a Spark that is gone is found by those who run the job
                _LOGGER.debug("nobody knows whether a job waits for a slot: %s", error)
                waiting = frozenset()
            if waited & waiting:
                self._drain()
                waiting = frozenset()  # it gets the slot before the next look but one
            waited = waiting
