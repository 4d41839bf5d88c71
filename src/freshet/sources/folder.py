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

Order = Literal["time", "name"]
Key = tuple[int, str]
"""What files are ordered by: the modification time in nanoseconds (0 where the order is that of names), the name."""

OWN_FAULTS: Final = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM, errno.ELOOP, errno.EISDIR, errno.ENXIO})
"""Errors of a file itself; with others the system fails, and reading the file again may help."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file as a look at the folder shows it."""

    key: Key
    size: int
    modified: int

    @property
    def name(self) -> str:
        """Its name in the folder."""
        return self.key[1]


class Finished:
    """The files that have been read: the newest by name, the others by a mark that none of them lies above.

    So it stays small however many files come. A file that lies at or below the mark counts as read.

    >>> finished = Finished(remember=2)
    >>> [finished.add((0, name)) for name in ("a", "b", "c")]
    [[], [], ['a']]
    >>> finished.mark, (0, "a") in finished, (0, "c") in finished, (0, "d") in finished
    ((0, 'a'), True, True, False)
    """

    def __init__(self, remember: int, mark: Key | None = None, keys: list[Key] | None = None) -> None:
        self._remember = remember
        self.mark = mark
        self._keys = sorted(keys or [])
        self._names = {name for _, name in self._keys}

    def add(self, key: Key) -> list[str]:
        """Says that a file has been read; returns the names that are known by the mark alone from now on."""
        bisect.insort(self._keys, key)
        self._names.add(key[1])
        sunk = []
        while len(self._keys) > self._remember:
            gone = self._keys.pop(0)
            self.mark = gone if self.mark is None else max(self.mark, gone)
            self._names.discard(gone[1])
            sunk.append(gone[1])
        return sunk

    def __contains__(self, key: Key) -> bool:
        # By name as long as it is remembered: a read file that somebody touches is not read again.
        return key[1] in self._names or self.below(key)

    def below(self, key: Key) -> bool:
        """Whether it counts as read by the mark alone."""
        return self.mark is not None and key <= self.mark

    def position(self) -> dict[str, Any]:
        """For the source's position."""
        return {"mark": self.mark, "done": list(self._keys)}

    @classmethod
    def restored(cls, remember: int, position: Mapping[str, Any]) -> Finished:
        """From what :meth:`position` gave."""
        mark = position["mark"]
        return cls(remember, None if mark is None else _key(mark), [_key(key) for key in position["done"]])


def _key(parts: Any) -> Key:
    time, name = parts
    return int(time), str(name)


class Folder:
    """Looks at a folder: which files are complete.

    A file is complete when nothing has changed it for some seconds: by its modification time, or by looks that many
    seconds apart where clocks differ. Names that begin with ``.`` or ``_`` do not count.

    Args:
        path: The folder.
        pattern: Which names count, as in a shell.
        order: By what files are ordered.
        settle: Seconds without a change.
    """

    def __init__(self, path: Path, pattern: str, order: Order, settle: float) -> None:
        self.path, self._pattern, self._order, self._settle = path, pattern, order, settle
        self._seen: dict[str, tuple[int, int, float]] = {}

    def files(self) -> Iterator[Found]:
        """The files that are there, complete or not."""
        with os.scandir(self.path) as entries:
            for entry in entries:
                if entry.name.startswith((".", "_")) or not fnmatchcase(entry.name, self._pattern):
                    continue
                found = self.look(entry.name)
                if found is not None:
                    yield found

    def look(self, name: str) -> Found | None:
        """One file; None where there is none, or something else of that name."""
        try:
            status = os.stat(self.path / name)
        except OSError as error:
            if error.errno in OWN_FAULTS:
                return None
            raise
        if not stat.S_ISREG(status.st_mode):
            return None
        time = status.st_mtime_ns if self._order == "time" else 0
        return Found((time, name), status.st_size, status.st_mtime_ns)

    def complete(self, found: list[Found], now: float) -> list[Found]:
        """Those of the files that are complete, in order."""
        self._seen = {file.name: self._sight(file, now) for file in found}
        return sorted((file for file in found if self._is_complete(file, now)), key=lambda file: file.key)

    def _sight(self, file: Found, now: float) -> tuple[int, int, float]:
        """Size, modification time, and since when both are what they are."""
        known = self._seen.get(file.name)
        if known is not None and known[:2] == (file.size, file.modified):
            return known
        return file.size, file.modified, now

    def _is_complete(self, file: Found, now: float) -> bool:
        since = self._seen[file.name][2]
        return now - file.modified / 1e9 >= self._settle or now - since >= self._settle
