"""Dead letters and late rows of a stream."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from freshet.log.segments.lines import DurableLines, json_line
from freshet.log.store.state import StreamState


class Asides:
    """The files of a stream's dead letters and late rows, and the lock of its appends."""

    def __init__(self, folders: Mapping[str, Path], stream: StreamState) -> None:
        self.lock = threading.Lock()
        self._stream = stream
        name = quote(stream.name, safe="") + ".jsonl"
        self._dead = DurableLines(folders["dead"] / name, stream.dead_bytes, private=True)
        self._late = DurableLines(folders["late"] / name, stream.late_bytes, private=True)

    def write(self, dead: Sequence[Mapping[str, Any]], late: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
        self.reset()
        return self._dead.write(map(json_line, dead)), self._late.write(map(json_line, late))

    def reset(self) -> None:
        """Cuts off lines of a transaction that did not happen."""
        for lines, length in ((self._dead, self._stream.dead_bytes), (self._late, self._stream.late_bytes)):
            if lines.length != length:
                lines.reset(length)

    def delete(self) -> None:
        self.close()
        for lines in (self._dead, self._late):
            lines.path.unlink(missing_ok=True)

    def close(self) -> None:
        self._dead.close()
        self._late.close()
