"""Polls files: a look at the file's times and size tells whether to read it."""

from __future__ import annotations

import asyncio
import stat
import time
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Final

from freshet.model import UserError
from freshet.sources.mirror.polling.answer import PollAnswer, PollFailed, Spend, Validator
from freshet.sources.mirror.polling.packed import unpacked

_SETTLED: Final = 2.0
"""Seconds after which a file that is written again has another time, on every file system."""


class FileFetcher:
    """Polls files of this machine, or of one that is mounted.

    Args:
        folder: Folder that relative names begin at.
        executor: Threads for reading: a file of another machine may hang.
        timeout: Maximum number of seconds for a poll.
        max_bytes: Maximum size of a file, packed or unpacked.
    """

    def __init__(self, folder: Path, executor: Executor, timeout: float = 10.0, max_bytes: int = 1 << 20) -> None:
        self._folder, self._executor = folder, executor
        self._timeout, self._max_bytes = timeout, max_bytes

    def host(self, element: str) -> str:
        return ""

    def check(self, element: str) -> None:
        inside = (self._folder / element).resolve().is_relative_to(self._folder.resolve())
        if not inside:
            raise UserError(f"file {element} is not in {self._folder}: name another path")

    async def fetch(self, element: str, validator: Validator, spend: Spend) -> PollAnswer:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout):
                return await loop.run_in_executor(self._executor, self.read, self._folder / element, validator)
        except TimeoutError:
            raise PollFailed(f"it could not be read within {self._timeout:g} s") from None

    def read(self, path: Path, validator: Validator) -> PollAnswer:
        """Reads a file, unless it is still what the validator says."""
        try:
            found = path.stat()
            seen: dict[str, Any] = {"file": [found.st_mtime_ns, found.st_size, found.st_ino]}
            modified = found.st_mtime_ns / 1e9
            if not stat.S_ISREG(found.st_mode):
                raise PollFailed(f"{path} is not a file")  # a pipe would never end
            if seen == validator:
                return PollAnswer(None, validator, modified)
            with path.open("rb") as file:
                content = file.read(self._max_bytes + 1)
            if time.time() - modified < _SETTLED:
                seen = {}  # it may be written once more and still look the same
        except OSError as error:
            raise PollFailed(f"{path}: {error.strerror}") from None
        return PollAnswer(self._unpacked(path, content), seen, modified, len(content))

    def _unpacked(self, path: Path, content: bytes) -> bytes:
        if len(content) > self._max_bytes:
            raise PollFailed(f"{path} has more than {self._max_bytes:,} bytes", moved=len(content))
        if path.suffix.lower() == ".gz":
            return unpacked(content, self._max_bytes, len(content))
        return content

    async def close(self) -> None:
        pass
