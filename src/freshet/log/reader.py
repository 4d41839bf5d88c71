"""Reading a log that another process owns."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from freshet.log.readable import Readable
from freshet.log.segments.storage import PosixStorage
from freshet.log.store import instances, ledger
from freshet.log.store.examine import examined, told
from freshet.log.store.state import LogState, QueryRecord, ReaderState, StreamState
from freshet.model import Instance, Missing


class LogReader(Readable):
    """Reads a state folder, whether an owner writes to it or not; takes no lock and never writes.

    It is not registered, so retention does not wait for it: a reader that is too slow gets ``Lagged``.

    >>> import tempfile
    >>> from freshet.log import Log
    >>> from freshet.model import ARRIVAL
    >>> with tempfile.TemporaryDirectory() as folder, Log.open(Path(folder)) as log:
    ...     log.declare("s")
    ...     with LogReader(Path(folder)) as reader:
    ...         _ = log.append("s", pa.table({"v": [7], ARRIVAL: [1]}))
    ...         reader.end("s"), reader.read("s", 0, 1)["v"].to_pylist()
    (1, [7])
    """

    def __init__(self, state: Path) -> None:
        self._storage = PosixStorage(state / "segments")
        self._lock = threading.RLock()
        self._path = state / "store.db"
        self._connection = examined(state)
        self._version: int | None = None
        self._moves = 0
        self._state = LogState()

    def close(self) -> None:
        """Closes the store."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def streams(self) -> tuple[str, ...]:
        """Names of all streams."""
        with self._lock:
            self._refresh()
            return tuple(self._state.streams)

    def readers(self) -> dict[str, ReaderState]:
        """Registered readers with their cursors."""
        with self._lock:
            self._refresh()
            return dict(self._state.readers)

    def queries(self) -> dict[str, QueryRecord]:
        """What is known of queries from one run to the next."""
        with self._lock:
            self._refresh()
            return dict(self._state.queries)

    def records(self, stream: str) -> dict[str, Any]:
        """What the source of a stream remembers besides its position, by its keys."""
        with self._lock:
            self._refresh()
            id_ = self._state.stream(stream).id
            known = list(self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'records'"))
            rows = self._connection.execute("SELECT key, value FROM records WHERE stream = ?", (id_,)) if known else ()
            return {key: json.loads(value) for key, value in rows}

    def ledger(self) -> list[Missing]:
        """Everything that answers lack, oldest first."""
        with self._lock, told(self._path):
            return ledger.entries(self._connection.execute)

    def instances(self, where: str = "") -> list[Instance]:
        """Instances of periodic queries by release; ``where`` is a clause of SQL."""
        with self._lock, told(self._path):
            return instances.entries(self._connection.execute, where)

    def wait(self, stream: str, beyond: int, timeout: float | None = None, poll: float = 0.05) -> bool:
        """Waits until a stream has grown beyond an offset; returns False if it has not grown in time."""
        until = None if timeout is None else time.monotonic() + timeout
        while self.end(stream) <= beyond:
            left = poll if until is None else min(poll, until - time.monotonic())
            if left <= 0:
                return False
            time.sleep(left)
        return True

    def follow(
        self,
        stream: str,
        first: int | None = None,
        *,
        timeout: float | None = None,
        rows: int = 65_536,
        poll: float = 0.05,
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yields (offset, table) from an offset (or the oldest) on, as the stream grows.

        Ends if nothing new came for ``timeout`` seconds; None means never.
        """
        at = self.oldest(stream) if first is None else first
        while self.wait(stream, at, timeout, poll):
            end = min(self.end(stream), at + rows)
            yield at, self.read(stream, at, end)
            at = end

    @contextmanager
    def _stream(self, stream: str) -> Iterator[StreamState]:
        with self._lock:
            self._refresh()
            yield self._state.stream(stream)

    def _refresh(self) -> None:
        # data_version changes exactly when another connection has committed.
        ((version,),) = self._rows("PRAGMA data_version")
        if version == self._version:
            return
        self._rows("BEGIN")
        try:
            # Segments that were read before may have moved; a new owner may have declared another clock.
            ((moves,),) = self._rows("SELECT sum(value) FROM meta WHERE key IN ('moves', 'epoch')")
            if moves != self._moves:
                self._state = LogState()
                self._moves = moves
            with told(self._path):
                self._state.catch_up(self._rows)
        finally:
            self._rows("COMMIT")
        self._version = version

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with told(self._path):
            return self._connection.execute(query).fetchall()
