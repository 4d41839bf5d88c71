"""The threads of a run: the engine's, with a way to ask it things that never hangs, and those that do something now and
then."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from freshet.engine import Engine

T = TypeVar("T")

LOOK_AGAIN: Final = 0.2
"""Seconds after which somebody who waits for the engine looks whether it still runs."""

_LOGGER: Final = logging.getLogger(__name__)


class Loop:
    """Runs an engine until it is stopped or fails.

    Args:
        engine: It belongs to this thread from :meth:`start` on; before that and after the end, to whoever asks.
    """

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
            self.engine.run()
        except BaseException as error:
            self.error = error

    @property
    def running(self) -> bool:
        """Whether the engine is at work."""
        return self._thread.is_alive()

    def ask(self, function: Callable[[], T]) -> T:
        """Runs a function between two decisions and returns what it gave; where the engine has ended, at once."""
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
        """Waits for the end; returns whether it has come."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self.running


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
