"""A seat: one resident, and the thread that has Spark run it, again whenever it is lost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import SparkSession

from freshet.spark.driver.failures import SILENT, STOPPED, message, retry_reason
from freshet.spark.driver.residents.room import Room
from freshet.spark.driver.residents.scheduler import running_of
from freshet.spark.worker.report import rows_of
from freshet.spark.worker.resident import Post, resident_plan
from freshet.spark.worker.wire import Channel

_LOGGER: Final = logging.getLogger(__name__)
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 30.0
_SETTLED: Final = 10.0
"""Seconds after which a resident that is lost is started again at once."""
_IDLED: Final = "has ended, because there was no work or no free slot for it"
_RESTED: Final = "has left its slot to a Spark job, or its executor goes"
_AT_ONCE: Final = 0.5
"""Seconds in which a resident must get its slot where Spark would ask for another executor after a second."""


@dataclass
class Presence:
    """A resident that is connected; only the engine's thread touches it."""

    channel: Channel
    term: int
    process: int
    host: str
    task: int
    """The number of its Spark task."""
    dispatch: int | None = None
    """The number of what it runs now."""
    since: float = field(default_factory=time.time)
    """When it began to wait, if it runs nothing."""
    kept_bytes: int = 0
    """Memory of the states that it keeps."""


class Seat:
    """A place for one resident.

    Args:
        number: Which of the pool's.
        name: What the names of its Spark jobs begin with.
        session: Where they run.
        room: Says when there is a slot for it.
        post: Makes the resident's instructions from the number of the term.
    """

    def __init__(self, number: int, name: str, session: SparkSession, room: Room, post: Callable[[int], Post]) -> None:
        self.number, self.name = number, name
        self.presence: Presence | None = None
        self.term = 0
        self.losses = 0
        """How many of its residents were lost."""
        self.away: str | None = None
        """Why there was none when somebody last looked for one or when the last one ended."""
        self._session, self._room, self._post = session, room, post
        self._ending, self._called = threading.Event(), threading.Event()
        self._needs_call = False
        """Whether the next resident begins only when there is work for it."""
        self._dismissed = -1
        """The last term that was ended because it did not answer."""
        self._rested = -1
        """The last term that was ended because its slot was needed."""
        self._idled = -1
        """The last term that was ended because there was no work, or that did not get a slot."""
        self._thread = threading.Thread(target=self._supervise, name=f"freshet-{name}", daemon=True)

    def start(self) -> None:
        """Has Spark run a resident."""
        self._thread.start()

    def dismiss(self, term: int) -> None:
        """Ends a resident, which need not answer; another one takes its place."""
        self._dismissed = term
        self.lose(term)

    def lose(self, term: int) -> None:
        """Ends the job of a resident that has lost its connection: Spark should not run its task again by itself."""
        # A thread of its own: Spark takes a moment, and the engine must not wait for it.
        threading.Thread(target=self.cancel, args=(term,), name="freshet-dismiss", daemon=True).start()

    def rest(self, term: int) -> None:
        """Says that a resident ends, and that its slot is needed for something else for a while."""
        self._rested = term

    def rest_until_called(self, term: int) -> None:
        """Says that a resident ends, and that the next one is needed only when there is work for it."""
        self._called.clear()
        self._idled = term

    def call(self) -> None:
        """Says that there is work for it."""
        self._called.set()

    def stop(self) -> None:
        """Ends the seat: from now on a resident that ends is not replaced."""
        self._ending.set()
        self._called.set()

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
        while not self._is_over(pause):
            if not self._enter():
                pause, self._needs_call = self._room.pause, self._room.elastic
                self.away = "finds no free slot"
                continue
            self.term += 1
            began = time.monotonic()
            try:
                reason = self._run()
            finally:
                self._room.leave()
            if self._ending.is_set() or reason in (STOPPED, SILENT):
                return
            if self.term in (self._rested, self._idled):
                self._needs_call = self._idled == self.term
                pause = self._room.pause if self._needs_call else _LONGEST_PAUSE
                self.away = _IDLED if self._needs_call else _RESTED
                continue
            lasted = time.monotonic() - began
            pause = _FIRST_PAUSE if lasted > _SETTLED else min(_LONGEST_PAUSE, 2 * pause or _FIRST_PAUSE)
            self.losses += 1
            self._tell(reason, pause)

    def _is_over(self, pause: float) -> bool:
        """Waits before the next resident; returns whether there is to be none any more."""
        self._ending.wait(pause)
        if self._needs_call:
            self._called.wait()
        self._called.clear()
        self._needs_call = False
        return self._ending.is_set()

    def _enter(self) -> bool:
        try:
            return self._room.enter(self.number)
        except Exception as error:
            _LOGGER.debug("resident %s does not know whether there is a slot: %s", self.number, error)
            return False

    def _run(self) -> str | None:
        """Runs a resident to its end; returns the reason if it did not come by itself."""
        context, over = self._session.sparkContext, threading.Event()
        try:
            context.setJobGroup(self._group(self.term), f"resident worker {self.number}", True)
            if self._room.elastic:
                watching = threading.Thread(
                    target=self._watch, args=(self.term, over), name="freshet-watch", daemon=True
                )
                watching.start()
            rows_of(resident_plan(self._session, self._post(self.term)))
        except Exception as error:
            return retry_reason(error) or message(error)
        finally:
            over.set()
        return None

    def _watch(self, term: int, over: threading.Event) -> None:
        """Withdraws a resident that does not get a slot at once: while it waits, Spark would ask for an executor."""
        since = None
        try:
            while not over.wait(_AT_ONCE / 5):
                running = running_of(self._session.sparkContext, self._group(term))
                if running:
                    return
                since = time.monotonic() if since is None and running == 0 else since
                if since is not None and time.monotonic() - since >= _AT_ONCE:
                    self._idled = term
                    self.cancel(term)
                    return
        except Exception as error:
            _LOGGER.debug("resident %s does not know whether it waits: %s", self.number, error)

    def _tell(self, reason: str | None, pause: float) -> None:
        why = reason if reason not in (None, "cancelled") else "the connection to it was lost"
        why = "it did not answer" if self._dismissed == self.term else why
        self.away = f"has ended: {why}"
        _LOGGER.warning("resident worker %s has ended: %s; another one starts in %.1f s", self.number, why, pause)
