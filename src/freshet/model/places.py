"""Paths that a person gives: they are on a disk of this machine, or mounted there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from freshet.model.errors import UserError

# As a path, s3a://bucket has lost one of its slashes. One letter is no scheme but a drive.
_SCHEME: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]+):/")


def why_not_local(path: str | Path) -> str | None:
    """Why a path cannot be used: it is an address; None if it is a path.

    >>> why_not_local("data/out.jsonl"), why_not_local(Path("/var/lib"))
    (None, None)
    >>> why_not_local("s3a://bucket/state")
    's3a:// is not supported: use a path on a disk of this machine, or on one that is mounted there'
    >>> why_not_local(Path("file:///var/lib"))
    'file:// is not supported: write the plain path'
    """
    found = _SCHEME.match(str(path))
    if found is None:
        return None
    scheme = found.group(1).lower()
    if scheme == "file":
        return "file:// is not supported: write the plain path"
    return f"{scheme}:// is not supported: use a path on a disk of this machine, or on one that is mounted there"


def check_local(path: str | Path | None, what: str) -> None:
    """Refuses an address where a path is wanted.

    >>> check_local("hdfs://host/state", "state")
    Traceback (most recent call last):
    freshet.model.errors.UserError: state: hdfs:// is not supported: use a path on a disk of this machine, or on one...
    """
    reason = None if path is None else why_not_local(path)
    if reason is not None:
        raise UserError(f"{what}: {reason}")
