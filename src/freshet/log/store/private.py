"""Who may read a state folder: its owner alone, unless its group may write to the folder.

Rows, dead letters and positions of sources are nobody else's business. An existing folder keeps the
permissions that somebody gave it. If the group may write to it (a cluster whose executors have another account),
what is made in it belongs to the group, too.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def file_mode(folder: Path) -> int:
    """Permissions of files in a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     alone = oct(file_mode(Path(folder)))
    ...     os.chmod(folder, 0o770)
    ...     alone, oct(file_mode(Path(folder)))
    ('0o600', '0o660')
    """
    return 0o660 if folder.stat().st_mode & stat.S_IWGRP else 0o600


def umask_of(folder: Path) -> int:
    """The umask of a process that makes files in a folder."""
    return 0o777 & ~_with_search(file_mode(folder))


def make_folder(path: Path) -> None:
    """Makes a folder, unless it exists; folders above it get the permissions that the process gives."""
    if path.is_dir():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = _with_search(file_mode(path.parent) if path.parent.stat().st_uid == os.geteuid() else 0o600)
    path.mkdir(mode=mode, exist_ok=True)
    if mode & stat.S_IWGRP:
        path.chmod(mode | stat.S_IMODE(path.stat().st_mode))


def open_private(path: Path, flags: int) -> int:
    """Opens a file. Nobody else can read a new file, whatever permissions the process gives."""
    return open_private_in(path.parent, path.name, flags)


def open_private_in(folder: Path, name: str, flags: int) -> int:
    """The same for a file of a folder."""
    mode = file_mode(folder)
    descriptor = os.open(os.path.join(folder, name), flags | os.O_CLOEXEC, mode)
    if mode & stat.S_IWGRP:
        with suppress(PermissionError):  # a file of another account of the group
            os.fchmod(descriptor, mode)
    return descriptor


def write_private(path: Path, text: str) -> None:
    """Writes a text to a file."""
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
        file.write(text)


def make_private(path: Path) -> None:
    """Takes the permissions of others away from a file."""
    with suppress(FileNotFoundError, PermissionError):
        path.chmod(file_mode(path.parent))


def _with_search(mode: int) -> int:
    """The permissions of a folder: who may read it may also enter it."""
    return mode | (mode & 0o444) >> 2
