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
from freshet.sources.options import LocalPath

_OPEN: Final[set[Path]] = set()
_OPEN_LOCK: Final = threading.Lock()


class JsonlOptions(SinkOptions):
    """Options of the sink kind ``jsonl``.

    Args:
        path: The file; its folder is made if needed.
        append: Writes behind the lines of an existing file. Without it such a file is refused, unless this
            sink itself wrote it: nobody could tell which rows it holds.
    """

    path: LocalPath
    append: bool = False


class JsonlSink:
    """Writes a line of JSON for each row (see :func:`~freshet.sinks.rows.json_lines` for the values).

    The length of the file is kept with the cursor. What a crash left beyond it is cut off when the sink is opened, so
    every row is in the file exactly once. If somebody deletes the file, later rows go to a new one, and
    ``note`` says so.
    """

    def __init__(self, options: JsonlOptions) -> None:
        self.arrival = options.arrival
        self.path: Final = options.path.expanduser().absolute()
        self._append = options.append
        self._lines: DurableLines | None = None
        self.note: str | None = None

    def open(self, state: Mapping[str, Any]) -> dict[str, Any]:
        self._claim()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            length = self._length(state)
            if length is None:
                raise UserError(str(self.refusal(state)))
            self._lines = DurableLines(self.path, length)
            self._notice()
        except OSError as error:
            self.close()
            raise UserError(f"file {self.path} cannot be written: {error.strerror}") from None
        except UserError:
            self.close()
            raise
        return self._state(self._lines.length)

    def refusal(self, state: Mapping[str, Any]) -> str | None:
        """Why it must not write its file, given what it kept; None if it may."""
        try:
            if self._length(state) is not None:
                return None
        except OSError:
            return None  # open will say what is wrong with it
        return (
            f"file {self.path} holds lines already, and this sink did not write them: move or delete it, choose "
            "another path, or set append = true to write behind them"
        )

    def _length(self, state: Mapping[str, Any]) -> int | None:
        """How much of the file counts; None if it holds lines that nobody knows."""
        found = self.path.stat().st_size if self.path.exists() else 0
        if state.get("path") == str(self.path):
            return int(state["length"])
        # The file of a folder that was moved as a whole, with nothing behind the part that counts.
        moved = found == state.get("length") and not Path(state["path"]).exists()
        return found if self._append or moved or not found else None

    def write(self, table: pa.Table, token: Token) -> dict[str, Any]:
        assert self._lines is not None, "open comes first"
        length = self._lines.write(json_lines(table))
        self._notice()
        return self._state(length)

    def _notice(self) -> None:
        missing = 0 if self._lines is None else self._lines.missing
        if missing:
            self.note = (
                f"file {self.path} was deleted, replaced or shortened: {missing:,} bytes that were written to it are "
                "gone, later rows are in the file that is there now"
            )

    def close(self) -> None:
        if self._lines is not None:
            if self._lines.vanished:
                gone = self._lines.missing + self._lines.vanished
                self.note = f"file {self.path} was deleted or replaced: {gone:,} bytes that were written to it are gone"
            self._lines.close()
            self._lines = None
        with _OPEN_LOCK:
            _OPEN.discard(self.path)

    def _state(self, length: int) -> dict[str, Any]:
        return {"path": str(self.path), "length": length}

    def _claim(self) -> None:
        """Claims the file: two sinks on one file would cut off each other's lines."""
        if self._lines is not None:
            self.close()
        with _OPEN_LOCK:
            if self.path in _OPEN:
                raise UserError(f"file {self.path} is written by another sink already: choose another path")
            _OPEN.add(self.path)


KINDS: Final = {"jsonl": (JsonlOptions, JsonlSink)}
