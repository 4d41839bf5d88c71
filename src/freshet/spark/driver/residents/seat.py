"""A seat: one resident, and the thread that has Spark run it, again whenever it is lost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from freshet.spark.driver.failures import STOPPED, message, retry_reason
from freshet.spark.driver.residents.slots import slots_of
from freshet.spark.worker.report import rows_of
from freshet.spark.worker.resident import Post, resident_plan
from freshet.spark.worker.wire import Channel

_LOGGER: Final = logging.getLogger(__name__)
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 30.0
_SETTLED: Final = 10.0
"""Seconds after which a resident that is lost is started again at once."""


@dataclass
class Presence:
    """A resident that is connected; only the engine's thread touches it."""

    channel: Channel
    process: int
    host: str
    dispatch: int | None = None
    """The number of what it runs now."""


class Seat:
    """A place for one resident.

    Args:
        number: Which of the pool's.
        name: What the names of its Spark jobs begin with.
        session: Where they run.
        post: Makes the resident's instructions from the number of the term.
    """

    def __init__(self, number: int, name: str, session: SparkSession, post: Callable[[int], Post]) -> None:
        self.number, self.name = number, name
        self.presence: Presence | None = None
        self.term = 0
        self.losses = 0
        """How many of its residents were lost."""
        self._session, self._post = session, post
        self._ending = threading.Event()
        self._dismissed = -1
        """The last term that was ended because it did not answer."""
        self._rested = -1
        """The last term that was ended because its slot was needed."""
        self._thread = threading.Thread(target=self._supervise, name=f"freshet-{name}", daemon=True)

    def start(self) -> None:
        """Has Spark run a resident."""
        self._thread.start()

    def dismiss(self) -> None:
        """Ends the present resident, which need not answer; another one takes its place."""
        self._dismissed = self.term
        # A thread of its own: Spark takes a moment, and the engine must not wait for it.
        threading.Thread(target=self.cancel, args=(self.term,), name="freshet-dismiss", daemon=True).start()

    def rest(self) -> None:
        """Says that the present resident ends, and that its slot is needed for something else for a while."""
        self._rested = self.term

    def stop(self) -> None:
        """Ends the seat: from now on a resident that ends is not replaced."""
        self._ending.set()

    def join(self, seconds: float) -> bool:
        """Waits for the end of the resident's job; returns whether it came."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def cancel(self, term: int | None = None) -> None:
        """Has Spark end the resident's job, of a term or of the present one."""
        try:
            self._session.sparkContext.cancelJobGroup(self._group(self.term if term is None else term))
        except Exception as error:  # a Spark that is gone runs no resident
            _LOGGER.debug("the job of resident %s could not be cancelled: %s", self.number, error)

    def _group(self, term: int) -> str:
        return f"{self.name}-{term}"

    def _supervise(self) -> None:
        pause = 0.0
        while not self._ending.wait(pause):
            if not self._has_room():
                pause = _LONGEST_PAUSE
                continue
            self.term += 1
            began = time.monotonic()
            reason = self._run()
            if self._ending.is_set() or reason in (STOPPED, "Spark's JVM does not answer"):
                return
            if self._rested == self.term:
                pause = _LONGEST_PAUSE
                continue
            lasted = time.monotonic() - began
            pause = _FIRST_PAUSE if lasted > _SETTLED else min(_LONGEST_PAUSE, 2 * pause or _FIRST_PAUSE)
            self.losses += 1
            self._tell(reason, pause)

    def _has_room(self) -> bool:
        """Whether there are still slots for it and for jobs: executors may have gone."""
        try:
            return slots_of(self._session.sparkContext) > self.number + 1
        except Exception:
            return True  # running it finds out why

    def _run(self) -> str | None:
        """Runs a resident to its end; returns the reason if it did not come by itself."""
        context = self._session.sparkContext
        try:
            context.setJobGroup(self._group(self.term), f"resident worker {self.number}", True)
            rows_of(resident_plan(self._session, self._post(self.term)))
        except Exception as error:
            return retry_reason(error) or message(error)
        return None

    def _tell(self, reason: str | None, pause: float) -> None:
        why = "it did not answer" if self._dismissed == self.term else reason or "it lost the connection"
        _LOGGER.warning("resident worker %s has ended: %s; another one starts in %.1f s", self.number, why, pause)
