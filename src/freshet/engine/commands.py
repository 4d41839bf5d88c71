"""Commands: functions that other threads have run on the engine's own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any


class Commands:
    """A queue of functions. Any thread adds to it, and one thread runs what is in it.

    >>> commands = Commands()
    >>> sum_of_two = commands.add(lambda: 1 + 1)
    >>> commands.obey()
    >>> sum_of_two.result()
    2
    """

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()

    def add(self, function: Callable[[], Any]) -> Future[Any]:
        """Adds a function; the future has what it returns or raises."""
        future: Future[Any] = Future()
        self._waiting.put((function, future))
        return future

    def obey(self) -> None:
        """Runs all functions that wait, in their order."""
        while True:
            try:
                function, future = self._waiting.get_nowait()
            except Empty:
                return
            try:
                future.set_result(function())
            except Exception as error:
                future.set_exception(error)
