"""Rows kept in memory, for tests and notebooks."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from pydantic import Field

from freshet.sinks.sink import SinkOptions, Token


class MemoryOptions(SinkOptions):
    """Options of the sink kind ``memory``.

    Args:
        limit: How many rows are kept; the oldest go first.
    """

    limit: int = Field(default=100_000, ge=1)


class MemorySink:
    """Keeps the newest rows.

    >>> sink = MemorySink(MemoryOptions(limit=2))
    >>> sink.write(pa.table({"v": [1, 2, 3]}), Token("q", 0, 3))
    {}
    >>> sink.rows()
    [{'v': 2}, {'v': 3}]
    """

    def __init__(self, options: MemoryOptions) -> None:
        self.arrival = options.arrival
        self._rows: deque[dict[str, Any]] = deque(maxlen=options.limit)
        self._end = 0
        self.total = 0
        self._changed = threading.Condition()

    def open(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def write(self, table: pa.Table, token: Token) -> dict[str, Any]:
        # The token shows that a range has come before; it comes again if its cursor was not kept.
        new = table.slice(min(max(self._end - token.first, 0), table.num_rows)).to_pylist()
        with self._changed:
            self._rows.extend(new)
            self._end = max(self._end, token.end)
            self.total += len(new)
            self._changed.notify_all()
        return {}

    def close(self) -> None:
        """Keeps the rows, so that they can be looked at after the run."""

    def rows(self) -> list[dict[str, Any]]:
        """The kept rows, oldest first."""
        with self._changed:
            return list(self._rows)

    def wait(self, total: int, timeout: float | None = None) -> bool:
        """Waits until ``total`` rows have come since the start; returns whether they have."""
        with self._changed:
            return self._changed.wait_for(lambda: self.total >= total, timeout)


KINDS: Final = {"memory": (MemoryOptions, MemorySink)}
