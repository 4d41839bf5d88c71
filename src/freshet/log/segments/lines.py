"""Files of JSON lines that are exact across crashes."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from freshet.log.intake.shown import jsonable
from freshet.log.segments.storage import sync_path, write_all
from freshet.log.store.private import open_private

_TRIES: Final = 5
"""How often to write lines to a file that vanishes meanwhile."""


class DurableLines:
    r"""A text file with a durable length that is kept elsewhere, in the transaction that the lines belong to.

    Lines that were written before a crash, without their transaction, lie beyond that length. They
    are cut off when the file is opened again, so every line is there exactly once.

    If somebody deletes, moves, replaces or shortens the file meanwhile, lines continue in what is then at its path;
    ``missing`` says how much of what was written is no longer there.

    Args:
        path: The file; it is made with the first line.
        length: The length that the last transaction recorded.
        private: Whether nobody else may read it.

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

    def __init__(self, path: Path, length: int = 0, private: bool = False) -> None:
        self.path, self._private = path, private
        self._descriptor: int | None = None
        self.length = 0
        self.missing = 0
        if path.exists():
            self.reset(length)
        else:
            self.missing = length

    def write(self, lines: Iterable[str]) -> int:
        """Adds lines and returns the new length. They are durable on return, and final once that length is recorded."""
        content = "".join(line + "\n" for line in lines).encode()
        for _ in range(_TRIES) if content else ():
            self._write(content)
            if self._is_there():
                self.length += len(content)
                break
            # Where the file was only moved away, the lines must not be in both.
            os.ftruncate(self._open(), self.length)
        else:
            if content:
                raise OSError(errno.ENOENT, "it is deleted again and again while it is written", str(self.path))
        return self.length

    def _write(self, content: bytes) -> None:
        if self._descriptor is not None and not self._is_there():
            self.close()
        descriptor = self._open()
        self.reset(self.length)
        os.lseek(descriptor, self.length, os.SEEK_SET)
        write_all(descriptor, [content])
        os.fsync(descriptor)

    def _is_there(self) -> bool:
        """Whether the open file is the one at the path."""
        return same_file(self._open(), self.path)

    @property
    def vanished(self) -> int:
        """How much of the written text is in a file that is no longer at the path."""
        return 0 if self._descriptor is None or self._is_there() else self.length

    def reset(self, length: int) -> None:
        """Cuts off everything beyond a length. If somebody has shortened the file, its end is the length."""
        descriptor = self._open()
        size = os.fstat(descriptor).st_size
        if size > length:
            os.ftruncate(descriptor, length)
            os.fsync(descriptor)
        self.missing += max(0, length - size)
        self.length = min(length, size)

    def close(self) -> None:
        """Closes the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        if self._descriptor is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT
            if self._private:
                self._descriptor = open_private(self.path, flags)
            else:
                self._descriptor = os.open(self.path, flags | os.O_CLOEXEC, 0o666)
            sync_path(self.path.parent)
        return self._descriptor


def same_file(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one at a path, and not a file that was deleted or moved away."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    opened = os.fstat(descriptor)
    return (found.st_dev, found.st_ino) == (opened.st_dev, opened.st_ino)


def json_line(value: Mapping[str, Any]) -> str:
    r"""One line of strict JSON that UTF-8 can hold (see :func:`~freshet.log.intake.shown.jsonable` for the values).

    >>> from datetime import datetime
    >>> json_line({"v": float("nan"), "at": datetime(2024, 1, 2), "raw": b"\xff", "half": "\ud800"})
    '{"v": "nan", "at": "2024-01-02T00:00:00", "raw": "ff", "half": "\\ud800"}'
    """
    plain = jsonable(value)
    line = json.dumps(plain, ensure_ascii=False, allow_nan=False)
    # Half a character has no UTF-8 form, but JSON has an escape for it.
    return line if _encodes(line) else json.dumps(plain, allow_nan=False)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
