"""Tuples that a Python program hands over."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

from freshet.log import LogFull, Receipt
from freshet.model import FreshetError, Stream
from freshet.sources.options import Options
from freshet.sources.source import Batch

_FIRST_WAIT: Final = 0.01
_LONGEST_WAIT: Final = 0.5

PushedRows: TypeAlias = pa.Table | pa.RecordBatch | Sequence[Mapping[str, Any]]


class Backpressure(FreshetError):
    """The log has no room at present: nothing of the push was taken in; push the same rows again later."""


class PushOptions(Options):
    """Options of the source kind ``push``: it has none."""


class PushSource:
    """Takes rows from any thread of the program. When :meth:`push` returns, the rows are durable: they take effect
    exactly once, whatever happens to the process afterwards. Malformed and late rows are set aside as from any
    other source; the receipt counts them."""

    def __init__(self, options: PushOptions, stream: Stream) -> None:
        self._stream = stream.name
        self._append: Callable[[PushedRows], Receipt] | None = None
        self._closed = threading.Event()

    def push(self, rows: PushedRows, *, block: bool = True, timeout: float | None = None) -> Receipt:
        """Appends rows (a table, or mappings of column to value) to the stream.

        Args:
            rows: They arrive together, now.
            block: Wait where the log has no room, instead of raising at once.
            timeout: Longest wait in seconds; None: as long as it takes.

        Raises:
            Backpressure: The log has no room; nothing was taken in.
            FreshetError: The application is not running.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        wait = _FIRST_WAIT
        while True:
            try:
                return self._running()(rows)
            except LogFull as full:
                left = end - time.monotonic() if block else 0.0
                if left <= 0.0:
                    raise Backpressure(str(full)) from None
            self._closed.wait(min(wait, left))
            wait = min(2 * wait, _LONGEST_WAIT)

    def _running(self) -> Callable[[PushedRows], Receipt]:
        if self._append is None or self._closed.is_set():
            raise FreshetError(f"stream {self._stream} takes no pushes: its application is not running")
        return self._append

    def connect(self, append: Callable[[PushedRows], Receipt]) -> None:
        """Says how rows come into the log."""
        self._append = append

    def restore(self, position: Mapping[str, Any]) -> None:
        """Has nothing to go on from: who pushed knows what was acknowledged."""

    def poll(self, now: float) -> Batch | None:
        return None

    def next_due(self) -> float | None:
        return math.inf

    def close(self) -> None:
        self._closed.set()
