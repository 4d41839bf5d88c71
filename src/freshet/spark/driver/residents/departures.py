"""Departures: residents on executors that Spark is about to give up are asked to go, so that they hold up nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from pyspark import SparkContext

from freshet.spark.driver.residents.scheduler import is_leaving

_LOOK: Final = 2.0
"""Seconds between two looks."""


class Departures:
    """Watches the executors of residents, if Spark may decommission executors; otherwise it does nothing.

    A decommissioned executor gets no new tasks, and ends when its last task has ended. A resident would never end.

    Args:
        context: Where residents run.
        tasks: Gives the number of the Spark task of each seat that has a resident.
        drain: Is called with a seat whose executor is about to go; the watching thread calls it.
    """

    def __init__(
        self, context: SparkContext, tasks: Callable[[], Mapping[int, int]], drain: Callable[[int], None]
    ) -> None:
        self._context, self._tasks, self._drain = context, tasks, drain
        self._closing = threading.Event()
        told = context.getConf().get("spark.decommission.enabled", "false") or "false"
        if told.strip().lower() == "true":
            threading.Thread(target=self._watch, name="freshet-departures", daemon=True).start()

    def close(self) -> None:
        """Watches no longer."""
        self._closing.set()

    def _watch(self) -> None:
        while not self._closing.wait(_LOOK):
            for seat, task in self._tasks().items():
                with suppress(Exception):  # a Spark that is gone is found by those who run the resident
                    if is_leaving(self._context, task):
                        self._drain(seat)
