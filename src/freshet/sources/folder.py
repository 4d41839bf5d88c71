"""Which files of a folder are to be read next, and which have been."""

from __future__ import annotations

import bisect
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Literal

FileOrder = Literal["time", "name"]
FileKey = tuple[int, str]
"""What files are ordered by: the modification time in nanoseconds (0 if the order is by name), then the name."""

OWN_FAULTS: Final = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM, errno.ELOOP, errno.EISDIR, errno.ENXIO})
"""Errors of a file itself. Any other error is one of the system, and reading the file again may help."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file as a look at the folder shows it."""

    key: FileKey
    size: int
    modified: int

    @property
    def name(self) -> str:
        """Its name in the folder."""
        return self.key[1]


class FinishedFile:
    """The files that have been read. The newest are known by name, the others by a mark: none of them lies above it.

    So it stays small however many files come. A file at or below the mark counts as read.

    >>> finished = FinishedFile(remember=2)
    >>> [finished.add((0, name)) for name in ("a", "b", "c")]
    [[], [], ['a']]
    >>> finished.mark, (0, "a") in finished, (0, "c") in finished, (0, "d") in finished
    ((0, 'a'), True, True, False)
    """

    def __init__(self, remember: int, mark: FileKey | None = None, keys: list[FileKey] | None = None) -> None:
        self._remember = remember
        self.mark = mark
        self._keys = sorted(keys or [])
        self._names = {name for _, name in self._keys}

    def add(self, key: FileKey) -> list[str]:
        """Records that a file has been read; returns the names that are from now on known by the mark alone."""
        bisect.insort(self._keys, key)
        self._names.add(key[1])
        sunk = []
        while len(self._keys) > self._remember:
            gone = self._keys.pop(0)
            self.mark = gone if self.mark is None else max(self.mark, gone)
            self._names.discard(gone[1])
            sunk.append(gone[1])
        return sunk

    def __contains__(self, key: FileKey) -> bool:
        # By name as long as it is remembered: a file that was read is not read again if somebody touches it.
        return key[1] in self._names or self.below(key)

    def below(self, key: FileKey) -> bool:
        """Whether it counts as read by the mark alone."""
        return self.mark is not None and key <= self.mark

    def position(self) -> dict[str, Any]:
        """What the source's position stores."""
        return {"mark": self.mark, "done": list(self._keys)}

    @classmethod
    def restored(cls, remember: int, position: Mapping[str, Any]) -> FinishedFile:
        """Restores it from what :meth:`position` gave."""
        mark = position["mark"]
        return cls(remember, None if mark is None else _key(mark), [_key(key) for key in position["done"]])


def _key(parts: Any) -> FileKey:
    time, name = parts
    return int(time), str(name)


class Folder:
    """Looks at a folder, and finds which files are complete.

    A file is complete when nothing has changed it for some seconds. Its modification time tells that; if clocks differ,
    two looks that many seconds apart do. Names that begin with ``.`` or ``_`` do not count.

    Args:
        path: The folder.
        pattern: Which names count, as in a shell.
        order: What files are ordered by.
        settle: Seconds without a change.
    """

    def __init__(self, path: Path, pattern: str, order: FileOrder, settle: float) -> None:
        self.path, self._pattern, self._order, self._settle = path, pattern, order, settle
        self._seen: dict[str, tuple[int, int, float]] = {}

    def files(self) -> Iterator[FoundFile]:
        """The files in the folder, complete or not."""
        with os.scandir(self.path) as entries:
            for entry in entries:
                if entry.name.startswith((".", "_")) or not fnmatchcase(entry.name, self._pattern):
                    continue
                found = self.look(entry.name)
                if found is not None:
                    yield found

    def look(self, name: str) -> FoundFile | None:
        """One file; None if there is none, or if something else has that name."""
        try:
            status = os.stat(self.path / name)
        except OSError as error:
            if error.errno in OWN_FAULTS:
                return None
            raise
        if not stat.S_ISREG(status.st_mode):
            return None
        time = status.st_mtime_ns if self._order == "time" else 0
        return FoundFile((time, name), status.st_size, status.st_mtime_ns)

    def complete(self, found: list[FoundFile], now: float) -> list[FoundFile]:
        """The complete ones among the files, in order."""
        self._seen = {file.name: self._sight(file, now) for file in found}
        return sorted((file for file in found if self._is_complete(file, now)), key=lambda file: file.key)

    def _sight(self, file: FoundFile, now: float) -> tuple[int, int, float]:
        """Size, modification time, and since when both have not changed."""
        known = self._seen.get(file.name)
        if known is not None and known[:2] == (file.size, file.modified):
            return known
        return file.size, file.modified, now

    def _is_complete(self, file: FoundFile, now: float) -> bool:
        since = self._seen[file.name][2]
        return now - file.modified / 1e9 >= self._settle or now - since >= self._settle
