"""Power cuts: what a disk would hold if the power failed right after a transaction became durable."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from freshet.log.store.tail import Tail


class PowerCuts:
    """Takes a copy of a state folder after each transaction, with what was synced by then and nothing else.

    SQLite syncs by itself. Of the segment files only those count that this process has synced, with the size that they
    had, and only if the folder was synced after they got their names.

    Args:
        state: The state folder.
        copies: Where the copies go, one folder for each transaction.
    """

    def __init__(self, state: Path, copies: Path) -> None:
        self._state, self._copies = state, copies
        self._sizes: dict[int, int] = {}
        """Synced bytes by inode."""
        self._names: dict[str, int] = {}
        """Inodes by the names in the folder of the segments, as they were when it was synced."""
        self.syncs: list[str] = []
        """What was synced, in order."""
        self.lost = 0
        """Files that were there at a cut, but not in the copy."""

    @contextmanager
    def watching(self, patch: pytest.MonkeyPatch) -> Iterator[PowerCuts]:
        """Takes the copies."""
        fsync, write = os.fsync, Tail.write

        def noting(descriptor: int) -> None:
            fsync(descriptor)
            self._synced(descriptor)

        def cutting(tail: Tail, commits: int) -> None:
            self._cut(self._copies / str(commits))  # the transaction is durable, and nothing came after it
            write(tail, commits)

        with patch.context() as some:
            some.setattr(os, "fsync", noting)
            some.setattr(Tail, "write", cutting)
            yield self

    def _synced(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        self.syncs.append(path.name)
        if stat.S_ISREG(status.st_mode):
            self._sizes[status.st_ino] = status.st_size
        elif path == (self._state / "segments").resolve():
            self._names = {each.name: each.stat().st_ino for each in path.iterdir()}

    def _cut(self, copy: Path) -> None:
        shutil.copytree(self._state, copy, ignore=shutil.ignore_patterns("segments", "lock", "tail", "running*"))
        (copy / "segments").mkdir()
        there = {each.name: each for each in (self._state / "segments").iterdir()}
        for name, inode in self._names.items():
            if name in there and (size := self._sizes.get(inode)) is not None:
                (copy / "segments" / name).write_bytes(there[name].read_bytes()[:size])
        self.lost += len(there) - len(list((copy / "segments").iterdir()))
