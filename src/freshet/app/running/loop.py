"""The threads of a run: the engine's, which others can ask things without ever hanging, and those for regular tasks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, TypeVar

from freshet.app.running.lasting import lasting

if TYPE_CHECKING:
    from freshet.engine import Engine, Event

T = TypeVar("T")

LOOK_AGAIN: Final = 0.2
"""Seconds between looks of a waiting thread at whether the engine still runs."""

_LOGGER: Final = logging.getLogger(__name__)


class Loop:
    """Runs an engine until it is stopped or fails. The engine belongs to this thread from :meth:`start` on; before that
    and after the end, to whoever asks."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.error: BaseException | None = None
        self._asking = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="freshet-engine", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def _run(self) -> None:
        try:
            with lasting():
                self.engine.run()
        except BaseException as error:
            self.error = error
        finally:
            # Sinks and Spark may take long to end, and that is no time in which queries were fresh.
            self.engine.clock.stop()

    @property
    def running(self) -> bool:
        """Whether the engine is at work."""
        return self._thread.is_alive()

    def ask(self, function: Callable[[], T]) -> T:
        """Runs a function between two decisions, or at once if the engine has ended; returns its result."""
        future: Future[T] | None = self.engine.call(function) if self.running else None
        while future is not None:
            try:
                return future.result(LOOK_AGAIN)
            except TimeoutError:
                if future.done():
                    raise  # the function itself raised a TimeoutError
                if not self.running and future.cancel():
                    future = None
        with self._asking:
            return function()

    def join(self, timeout: float | None = None) -> bool:
        """Waits for the end; returns whether the engine has ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self.running


class Rounds:
    """A thread that does something again and again, until it is stopped.

    As an observer of an engine it sleeps while nothing happens.

    Args:
        name: Name of the thread.
        seconds: Minimum time from one round to the next.
        work: What to do. If it fails, as with a full disk, the next round tries again.
        quiet: Additional seconds that a round waits if nothing has happened since the last one.
    """

    def __init__(self, name: str, seconds: float, work: Callable[[], object], quiet: float = 0.0) -> None:
        self._seconds, self._work, self._quiet = seconds, work, quiet
        self._stop, self._news = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def tell(self, event: Event) -> None:
        """Something happened: the next round comes as soon as it may."""
        if not self._news.is_set():
            self._news.set()

    def stop(self) -> None:
        """Ends the thread, if it was started."""
        self._stop.set()
        self._news.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            self._news.wait(self._quiet)
            if self._stop.is_set():
                return
            self._news.clear()
            try:
                self._work()
            except Exception as error:
                _LOGGER.warning("housekeeping: %s", error)
