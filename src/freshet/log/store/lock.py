"""The single-owner lock of a state folder."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

from freshet.log.store.private import open_private
from freshet.model import UserError


class OwnerLock:
    """Held from construction to :meth:`release`, or until the process dies. Its text says who holds it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = OwnerLock(Path(folder, "lock"))
    ...     try:
    ...         OwnerLock(Path(folder, "lock"))
    ...     except UserError as error:
    ...         print("refused")
    ...     lock.release()
    refused
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 1000, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise UserError(
                f"state folder {path.parent} is in use by {holder or 'another process'}; "
                "stop that one, or choose another state folder"
            ) from None

    def sign(self, epoch: int) -> None:
        """Writes who holds the lock."""
        text = f"process {os.getpid()} on {socket.gethostname()}, epoch {epoch}\n".encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text, 0)

    def release(self) -> None:
        """Releases the lock."""
        os.close(self._descriptor)
