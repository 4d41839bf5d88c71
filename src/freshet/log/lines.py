"""Files of JSON lines that are exact across crashes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from freshet.log.shown import jsonable
from freshet.log.storage import sync_folder, write_all


class DurableLines:
    r"""A text file whose durable length is kept elsewhere, in the transaction that the lines belong to.

    Lines that were written before a crash, but whose transaction did not happen, lie beyond that length and
    are cut off when the file is opened again: every line is there exactly once.

    Args:
        path: The file; it is made with the first line.
        length: The length that the last transaction recorded.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "dead.jsonl")
    ...     lines = DurableLines(path)
    ...     kept = lines.write(['{"a": 1}'])
    ...     _ = lines.write(["lost: the process dies before its transaction"])
    ...     lines.close()
    ...     DurableLines(path, kept).close()
    ...     path.read_text()
    '{"a": 1}\n'
    """

    def __init__(self, path: Path, length: int = 0) -> None:
        self.path = path
        self._descriptor: int | None = None
        self.length = 0
        if path.exists():
            self.reset(length)

    def write(self, lines: Iterable[str]) -> int:
        """Adds lines; returns the new length. They are durable when this returns and final when that length is."""
        content = "".join(line + "\n" for line in lines).encode()
        if content:
            descriptor = self._open()
            self.reset(self.length)
            os.lseek(descriptor, self.length, os.SEEK_SET)
            write_all(descriptor, memoryview(content))
            os.fsync(descriptor)
            self.length += len(content)
        return self.length

    def reset(self, length: int) -> None:
        """Cuts off everything beyond a length. Where somebody has shortened the file, its end is the length."""
        descriptor = self._open()
        size = os.fstat(descriptor).st_size
        if size > length:
            os.ftruncate(descriptor, length)
            os.fsync(descriptor)
        self.length = min(length, size)

    def close(self) -> None:
        """Closes the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            sync_folder(self.path.parent)
        return self._descriptor


def json_line(value: Mapping[str, Any]) -> str:
    r"""One line of strict JSON that UTF-8 can hold (see :func:`~freshet.log.shown.jsonable` for the values).

    >>> from datetime import datetime
    >>> json_line({"v": float("nan"), "at": datetime(2024, 1, 2), "raw": b"\xff", "half": "\ud800"})
    '{"v": "nan", "at": "2024-01-02T00:00:00", "raw": "ff", "half": "\\ud800"}'
    """
    plain = jsonable(value)
    line = json.dumps(plain, ensure_ascii=False, allow_nan=False)
    # Half a character has no UTF-8, but JSON has an escape for it.
    return line if _encodes(line) else json.dumps(plain, allow_nan=False)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
