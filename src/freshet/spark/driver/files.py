"""Small files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from freshet.log.store.private import file_mode, make_folder


def write_once(path: Path, text: str) -> None:
    """Writes a file unless it is there and whole.

    It is not synced: it serves only units of this run, and the next run writes it again.
    """
    with suppress(FileNotFoundError):
        if path.read_bytes() == text.encode():
            return
    write_whole(path, text)


def forget(folder: Path, *patterns: str, but: Collection[str] = ()) -> None:
    """Removes files of a folder, except those with some names (without their endings)."""
    for file in (file for pattern in patterns for file in folder.glob(pattern)):
        if file.stem not in but:
            file.unlink(missing_ok=True)


def write_whole(path: Path, text: str, mode: int | None = None) -> None:
    """Writes a file; readers see all of it or nothing, even if others write it, too. Its mode is that of its folder's
    files unless one is given."""
    make_folder(path.parent)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        part.chmod(file_mode(path.parent) if mode is None else mode)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
