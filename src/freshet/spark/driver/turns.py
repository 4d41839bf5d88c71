"""Taking turns: units run side by side, a suspect runs alone, and no job runs longer than its limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from freshet.model import FreshetError

GRACE: Final = 60.0
"""Seconds in which a cancelled job has to end."""
_LOOK: Final = 1.0


class Floor:
    """Lets many in together, or one alone.

    >>> floor = Floor()
    >>> with floor.together(), floor.together():
    ...     pass
    >>> with floor.alone():
    ...     pass
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._taken = False

    @contextmanager
    def together(self) -> Iterator[None]:
        """Lets others in, too, but never one that must be alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Waits until those who are inside have left; others wait until this one has left."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken)
            self._taken = True
            self._changed.wait_for(lambda: not self._inside)
        try:
            yield
        finally:
            with self._changed:
                self._taken = False
                self._changed.notify_all()


class TookTooLong(FreshetError):
    """A job was cancelled because it took longer than its limit."""


@dataclass(slots=True)
class _Watched:
    deadline: float
    over: bool = False


class TimeLimit:
    """Cancels jobs that take longer than a limit.

    Args:
        seconds: The limit; None: there is none.
        cancel: Cancels the jobs of a unit; the watching thread calls it.
        stuck: Is called with a unit whose job goes on although it was cancelled.
    """

    def __init__(self, seconds: float | None, cancel: Callable[[str], None], stuck: Callable[[str], None]) -> None:
        self._seconds, self._cancel, self._stuck = seconds, cancel, stuck
        self._watched: dict[str, _Watched] = {}
        self._stopping = threading.Event()
        if seconds is not None:
            threading.Thread(target=self._watch, args=(seconds,), name="freshet-time-limit", daemon=True).start()

    @contextmanager
    def watch(self, unit: str, at_least: float = 0.0) -> Iterator[None]:
        """Watches a job of a unit; it may take ``at_least`` seconds even if the limit is shorter.

        Raises:
            TookTooLong: Instead of the job's own error, if this has cancelled the job.
        """
        if self._seconds is None:
            yield
            return
        mine = self._watched[unit] = _Watched(time.monotonic() + max(self._seconds, at_least))
        try:
            yield
        except Exception as error:
            if mine.over:
                raise TookTooLong(f"a unit took longer than {self._seconds:g} s (unit_timeout)") from error
            raise
        finally:
            self._watched.pop(unit, None)

    def stop(self) -> None:
        """Watches no longer."""
        self._stopping.set()

    def _watch(self, seconds: float) -> None:
        while not self._stopping.wait(min(_LOOK, seconds / 4)):
            now = time.monotonic()
            for unit, watched in list(self._watched.items()):
                if now >= watched.deadline:
                    self._end(unit, watched, now)

    def _end(self, unit: str, watched: _Watched, now: float) -> None:
        """Cancels a job. This is repeated: as long as Spark plans the job, there is nothing to cancel."""
        watched.over = True
        if now >= watched.deadline + GRACE:
            self._stuck(unit)
        with suppress(Exception):  # a Spark that cannot even cancel is reported as stuck soon
            self._cancel(unit)
