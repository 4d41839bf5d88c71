"""Clocks: time that passes, and time that is made to pass."""

from __future__ import annotations

import os
import selectors
import time
import weakref
from contextlib import suppress
from typing import Final, Protocol

_MOST_WAKES: Final = 4096


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

    def stop(self) -> None:
        """Stands still: whatever is measured later is measured as of now."""


class Connection(Protocol):
    """Something with a file descriptor that can be waited for."""

    def fileno(self) -> int:
        """The descriptor."""


class Waker(Protocol):
    """What an executor knows of a clock: how to end the engine's wait."""

    def wake(self) -> None:
        """Ends a wait early; from any thread."""

    def watch(self, connection: Connection, *, writing: bool = False) -> None:
        """Ends each wait as soon as a connection can be read, or, with ``writing``, also when it can be written to.
        Only the waiting thread may call it, again for each change."""

    def unwatch(self, connection: Connection) -> None:
        """Forgets a connection, before it is closed; it is no error if it is not watched."""


class RealClock:
    """The clock on the wall. A wait also ends when a watched connection has something to read, so that no other thread
    is between a worker's answer and the engine.

    >>> clock = RealClock()
    >>> clock.wake()
    >>> clock.wait(clock.now() + 3600)  # returns at once: it was woken
    True
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._reading, self._writing = os.pipe()
        for descriptor in (self._reading, self._writing):
            os.set_blocking(descriptor, False)
        self._selector.register(self._reading, selectors.EVENT_READ)
        self._woken = False
        self._stopped: float | None = None
        weakref.finalize(self, _close, self._selector, self._reading, self._writing)

    def now(self) -> float:
        return time.time() if self._stopped is None else self._stopped

    def stop(self) -> None:
        self._stopped = self.now()

    def wait(self, until: float | None) -> bool:
        timeout = 0.0 if self._woken else None if until is None else max(0.0, until - time.time())
        self._selector.select(timeout)
        if self._woken:
            # In this order: a wake that comes between the two is noticed by the next wait at the latest.
            self._woken = False
            with suppress(BlockingIOError):
                os.read(self._reading, _MOST_WAKES)
        return True

    def wake(self) -> None:
        if not self._woken:
            self._woken = True
            with suppress(BlockingIOError):
                os.write(self._writing, b"!")

    def watch(self, connection: Connection, *, writing: bool = False) -> None:
        """See :class:`Waker`."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writing else 0)
        try:
            self._selector.modify(connection, events)
        except KeyError:
            self._selector.register(connection, events)

    def unwatch(self, connection: Connection) -> None:
        """See :class:`Waker`."""
        with suppress(KeyError, ValueError):
            self._selector.unregister(connection)


def _close(selector: selectors.BaseSelector, *descriptors: int) -> None:
    selector.close()
    for descriptor in descriptors:
        os.close(descriptor)


class VirtualClock:
    """A clock that jumps to the time that it is told to wait for.

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

    def stop(self) -> None:
        """Nothing to do: nobody waits any more."""
