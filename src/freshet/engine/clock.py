"""Clocks: time that passes, and time that is made to pass."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """What the engine knows of time."""

    def now(self) -> float:
        """Seconds since the epoch (real) or since the start (virtual)."""

    def wait(self, until: float | None) -> bool:
        """Returns at ``until`` or after a :meth:`wake`, whichever comes first; None waits for the wake alone.

        False says that nothing can happen any more: nobody is there to wake it.
        """

    def wake(self) -> None:
        """Ends a wait early; from any thread."""


class RealClock:
    """The clock on the wall.

    >>> clock = RealClock()
    >>> clock.wake()
    >>> clock.wait(clock.now() + 3600)  # returns at once: it was woken
    True
    """

    def __init__(self) -> None:
        self._woken = threading.Event()

    def now(self) -> float:
        return time.time()

    def wait(self, until: float | None) -> bool:
        self._woken.wait(None if until is None else max(0.0, until - time.time()))
        self._woken.clear()
        return True

    def wake(self) -> None:
        self._woken.set()


class VirtualClock:
    """A clock that jumps to where it is told to wait for.

    >>> clock = VirtualClock()
    >>> clock.wait(2.5)
    True
    >>> clock.now()
    2.5
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def wait(self, until: float | None) -> bool:
        """Makes it ``until``; time never goes back."""
        if until is None:
            return False
        self._now = max(self._now, until)
        return True

    def wake(self) -> None:
        """Nothing to do: nobody sleeps."""
