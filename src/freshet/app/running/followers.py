"""Who follows an output from another process: each follower keeps a small file in the state folder young."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

FOLDER: Final = "followers"
_YOUNG: Final = 6.0
"""Seconds after which a follower that does not touch its file counts as gone."""
_TOUCH: Final = 2.0


@contextmanager
def following(state: Path, query: str) -> Iterator[None]:
    """Counts as a follower of a query's output meanwhile, if the state folder may be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with following(Path(folder), "hot"):
    ...         during = followers_of(Path(folder))
    ...     during, followers_of(Path(folder))
    ({'hot': 1}, {})
    """
    path = state / FOLDER / f"{query}.{os.getpid()}-{uuid.uuid4().hex[:8]}"
    stopped = threading.Event()

    def touch() -> None:
        while not stopped.wait(_TOUCH):
            with suppress(OSError):
                path.touch()

    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    thread = threading.Thread(target=touch, name="freshet-following", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
        with suppress(OSError):
            path.unlink()


def followers_of(state: Path) -> dict[str, int]:
    """How many follow each output from other processes; files that nobody keeps young are removed after a while."""
    found: dict[str, int] = {}
    with suppress(OSError):
        for path in (state / FOLDER).iterdir():
            with suppress(OSError):
                age = time.time() - path.stat().st_mtime
                if age < _YOUNG:
                    name = path.name.rsplit(".", 1)[0]
                    found[name] = found.get(name, 0) + 1
                elif age > 60.0:
                    path.unlink()
    return found
