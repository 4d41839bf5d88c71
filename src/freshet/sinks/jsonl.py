"""A file of JSON lines, each row exactly once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from freshet.log import DurableLines
from freshet.model import UserError
from freshet.sinks.rows import json_lines
from freshet.sinks.sink import SinkOptions, Token

_OPEN: Final[set[Path]] = set()
_OPEN_LOCK: Final = threading.Lock()


class JsonlOptions(SinkOptions):
    """Options of the sink kind ``jsonl``.

    Args:
        path: The file; its folder is made if needed. Lines are added to what is there.
    """

    path: Path


class JsonlSink:
    """Writes a line of JSON for each row (see :func:`~freshet.sinks.rows.json_lines` for the values).

    The length of the file is kept with the cursor: what a crash left beyond it is cut off when the sink is opened, so
    that every row stands in the file exactly once.
    """

    def __init__(self, options: JsonlOptions) -> None:
        self.arrival = options.arrival
        self._path = options.path.expanduser().absolute()
        self._lines: DurableLines | None = None

    def open(self, state: Mapping[str, Any]) -> dict[str, Any]:
        self._claim()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Lines of before the first write are somebody's: their length is the beginning.
            known = state.get("path") == str(self._path)
            found = self._path.stat().st_size if self._path.exists() else 0
            self._lines = DurableLines(self._path, int(state["length"]) if known else found)
        except OSError as error:
            self.close()
            raise UserError(f"file {self._path} cannot be written: {error.strerror}") from None
        return self._state(self._lines.length)

    def write(self, table: pa.Table, token: Token) -> dict[str, Any]:
        assert self._lines is not None, "open comes first"
        return self._state(self._lines.write(json_lines(table)))

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
            self._lines = None
        with _OPEN_LOCK:
            _OPEN.discard(self._path)

    def _state(self, length: int) -> dict[str, Any]:
        return {"path": str(self._path), "length": length}

    def _claim(self) -> None:
        """Two sinks on one file would cut off each other's lines."""
        if self._lines is not None:
            self.close()
        with _OPEN_LOCK:
            if self._path in _OPEN:
                raise UserError(f"file {self._path} is written by another sink already: choose another path")
            _OPEN.add(self._path)
