"""Where segment files live: a small protocol, and its implementation on a POSIX folder."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa

from freshet.log.store.private import open_private_in

_AT_ONCE: Final = 512
"""Pieces that are handed to the system in one call; Linux takes 1024."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as the storage lists it; ``modified`` is in seconds since the epoch."""

    name: str
    bytes: int
    modified: float


class Storage(Protocol):
    """Immutable files with names. An object store needs no more than this to carry a log."""

    def put(self, name: str, pieces: Sequence[pa.Buffer | bytes], *, sync: bool = True) -> None:
        """Writes a new file: pieces, one after the other. It is durable when this returns, or else after :meth:`sync`;
        if this raises, nothing is left behind. Do not keep the pieces: their memory is used again."""

    def sync(self, names: Iterable[str]) -> None:
        """Makes files durable. If this raises, some of them may be damaged, and trying again would not tell."""

    def open(self, name: str) -> pa.NativeFile:
        """Opens a file for reading at any place; raises ``FileNotFoundError`` if there is none."""

    def size(self, name: str) -> int | None:
        """Bytes of a file; None if there is none."""

    def delete(self, name: str) -> None:
        """Deletes a file; it is no error if the file is already gone."""

    def list(self) -> Iterator[StoredFile]:
        """All files."""

    def free_bytes(self) -> int:
        """Free bytes."""


@dataclass(frozen=True)
class PosixStorage:
    """A folder on a local disk, or on a disk that all hosts of a cluster share. Readers memory-map the files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     storage = PosixStorage(Path(folder))
    ...     storage.put("a", [b"hel", b"lo"])
    ...     (storage.open("a").read(), [file.bytes for file in storage.list()])
    (b'hello', [5])
    """

    folder: Path

    def _at(self, name: str) -> str:
        """Where a file lies. A ``Path`` would intern its name, and no name is used twice: within some thousand steps a
        worker would write all over Python's table of interned strings, which it shares with the others, and copy it.
        """
        return os.path.join(self.folder, name)

    def put(self, name: str, pieces: Sequence[pa.Buffer | bytes], *, sync: bool = True) -> None:
        # No temporary name: a file exists for readers only once the store names it, so a half-written one is
        # an orphan. O_EXCL, because two attempts of one task must never write over each other.
        descriptor = open_private_in(self.folder, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            try:
                write_all(descriptor, pieces)
                if sync:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if sync:
                sync_path(self.folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(self._at(name))
            raise

    def sync(self, names: Iterable[str]) -> None:
        for name in names:
            sync_path(self._at(name))
        # Once for all of them: a file without a name would be as lost as one without content.
        sync_path(self.folder)

    def open(self, name: str) -> pa.NativeFile:
        return pa.memory_map(self._at(name))

    def size(self, name: str) -> int | None:
        try:
            return os.stat(self._at(name)).st_size
        except FileNotFoundError:
            return None

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._at(name))

    def list(self) -> Iterator[StoredFile]:
        with os.scandir(self.folder) as entries:
            for entry in entries:
                # A file may vanish between listing and looking (another attempt cleans up after itself).
                with suppress(FileNotFoundError):
                    if entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        yield StoredFile(entry.name, status.st_size, status.st_mtime)

    def free_bytes(self) -> int:
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize


def write_all(descriptor: int, pieces: Iterable[pa.Buffer | bytes]) -> None:
    """Writes pieces one after the other, however little the system takes at a time."""
    left = deque(view for view in (memoryview(piece).cast("B") for piece in pieces) if view)
    while left:
        written = os.writev(descriptor, list(islice(left, _AT_ONCE)))
        while left and written >= len(left[0]):
            written -= len(left.popleft())
        if written:
            left[0] = left[0][written:]


def sync_path(path: Path | str) -> None:
    """Makes the content of a file durable, or the names in a folder. It does not matter which process wrote them."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
