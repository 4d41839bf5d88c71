"""What a state folder knows of its store's end besides the store itself.

If its write-ahead log is damaged, SQLite silently drops what lies behind the damaged place. So every transaction has a
number. The file ``tail`` holds the last one, and the name of every segment file carries the last one at the time of
writing. Both are written after the transaction is durable: a store that ends before one of them has lost something.
"""

from __future__ import annotations

import os
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from freshet.log.store.private import open_private

_NAME: Final = "tail"
_STAMP: Final = re.compile(r"@(\d+)(?=[-.])")


class Tail:
    """Writes the file. It is never synced: it outlives its process, but after a power cut it may be old.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tail = Tail(Path(folder))
    ...     tail.write(7)
    ...     tail.close()
    ...     read_tail(Path(folder))
    7
    """

    def __init__(self, state: Path) -> None:
        self._descriptor = open_private(state / _NAME, os.O_RDWR | os.O_CREAT)

    def write(self, commits: int) -> None:
        """Records how many transactions are durable."""
        number = f"{commits:020}"
        # On a full disk the old one stays, which is still true.
        with suppress(OSError):
            os.pwrite(self._descriptor, f"{number} {_sum(number)}\n".encode(), 0)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._descriptor)


def read_tail(state: Path) -> int | None:
    """The last transaction that the file knows of; None if there is no file, or if it cannot be trusted."""
    try:
        number, told = (state / _NAME).read_bytes().decode("ascii").split()
        return int(number) if told == _sum(number) else None
    except (FileNotFoundError, ValueError):
        return None


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def stamped(name: str, commits: int) -> str:
    """The name of a file that is written after this number of transactions.

    >>> stamped("append-1-0", 7), stamp_of(stamped("append-1-0", 7) + ".arrows"), stamp_of("append-1-0.arrows")
    ('append-1-0@7', 7, None)
    """
    return f"{name}@{commits}"


def stamp_of(file: str) -> int | None:
    """How many transactions there were when a file was written; None if its name does not say."""
    found = _STAMP.findall(file)
    return int(found[-1]) if found else None


@dataclass(frozen=True, slots=True)
class Witness:
    """Evidence of a store's end. Look here before looking at the store, which may continue meanwhile."""

    tail: int | None
    files: tuple[str, ...]
    """All segment files."""

    @classmethod
    def of(cls, state: Path) -> Witness:
        """What lies in a state folder."""
        tail = read_tail(state)
        try:
            names = os.listdir(state / "segments")
        except FileNotFoundError:
            names = []
        return cls(tail, tuple(sorted(names)))

    @property
    def commits(self) -> int:
        """The minimum number of transactions that there have been."""
        return max((self.tail or 0, *(stamp_of(name) or 0 for name in self.files)))

    def beyond(self, commits: int) -> list[str]:
        """The names of files that know of later transactions than these."""
        told = [_NAME] if (self.tail or 0) > commits else []
        return told + [name for name in self.files if (stamp_of(name) or 0) > commits]
