"""Checks before a run whether it can write its files and folders."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from freshet.app.declared.problems import Problem


def check_places(state: Path, report: Path | None) -> Iterator[Problem]:
    """What is wrong with the places of the state and of the report."""
    if reason := why_no_folder(state):
        yield Problem("app.state", reason)
    if report is not None and (reason := why_no_file(report)):
        yield Problem("app.report", reason)


def why_no_file(path: Path) -> str | None:
    """Why a file cannot be written there; None if nothing speaks against it.

    >>> why_no_file(Path("/"))
    '/ is a folder: name a file'
    >>> why_no_file(Path("out/large.jsonl")) is None
    True
    """
    if impossible := _why_no_path(path):
        return impossible
    if path.is_dir():
        return f"{path} is a folder: name a file"
    if path.exists():
        return None if os.access(path, os.W_OK) else f"{path} cannot be written: permission denied"
    return why_no_folder(path.absolute().parent)


def why_no_folder(path: Path) -> str | None:
    """Why a folder cannot be made or written to; None if nothing speaks against it.

    >>> why_no_folder(Path("/dev/null/state"))
    'folder /dev/null/state cannot be made: /dev/null is a file'
    """
    if impossible := _why_no_path(path):
        return impossible
    path = path.absolute()
    above = next(folder for folder in (path, *path.parents) if folder.exists())
    if not above.is_dir():
        return f"folder {path} cannot be made: {above} is a file"
    if not os.access(above, os.W_OK | os.X_OK):
        return f"folder {path} cannot be {'written to' if above == path else 'made'}: permission denied in {above}"
    return None


def _why_no_path(path: Path) -> str | None:
    """Why no file or folder can have this name, wherever it is."""
    if "\0" in str(path):
        return f"{str(path)!r} cannot be a path: it holds the character NUL"
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return f"{str(path)[:40]}... cannot be a path: it is too long"
    return None
