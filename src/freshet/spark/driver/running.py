"""Notes of what runs now: small files that tell which queries to suspect after the process or Spark's JVM has died.

They are not synced: they survive a kill of the process, and after a power cut no query is to blame. No PySpark here:
an application reads them before it starts Spark.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from freshet.log.store.private import make_folder, open_private, write_private
from freshet.spark.driver.files import forget

_FOLDER: Final = "running"
_DEATH: Final = "death"


class Running:
    """Notes of the jobs that run now, one file for each thread that runs one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as state:
    ...     notes = Running(Path(state))
    ...     with notes.job(["q"]):
    ...         seen = last_words(Path(state))
    ...     seen, last_words(Path(state))
    (LastWords(queries=('q',), reason=None, certain=False), LastWords(queries=(), reason=None, certain=False))
    """

    def __init__(self, state: Path) -> None:
        self._folder = state / _FOLDER
        make_folder(self._folder)
        self.dead: str | None = None
        """Why nothing can run any more; if it is set, the notes stay."""

    @contextmanager
    def job(self, queries: Collection[str]) -> Iterator[None]:
        """Notes that a job of these queries runs."""
        file = self._folder / f"{threading.get_ident()}.json"
        # Without a note no query can be suspected, but all can run.
        with suppress(OSError):
            write_private(file, json.dumps(sorted(queries)))
        yield
        self._remove(file)

    def note(self, name: str) -> Note:
        """A note that is written again and again, by one thread that runs no job itself."""
        return Note(self._folder / f"{name}.json")

    def failed(self) -> None:
        """The job of this thread failed, but the process and the JVM are alive."""
        self._remove(self._folder / f"{threading.get_ident()}.json")

    def _remove(self, file: Path) -> None:
        if self.dead is None:
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def died(self, reason: str, certain: bool) -> None:
        """Nothing can run any more; ``certain``: because of what ran."""
        if self.dead is None:
            self.dead = reason
            told = [reason, "certain"] if certain else [reason]
            with suppress(OSError):
                write_private(self._folder / _DEATH, json.dumps(told))


class Note:
    """A note that stays open: writing to it takes some microseconds.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as state:
    ...     note = Running(Path(state)).note("resident-0")
    ...     note.write('["q", "r"]')
    ...     seen = last_words(Path(state)).queries
    ...     note.clear()
    ...     seen, last_words(Path(state)).queries
    (('q', 'r'), ())
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor: int | None = None
        self._length = 0
        self._is_clear = True

    def write(self, queries: str) -> None:
        """Notes that work of these queries, a JSON list, runs."""
        # Without a note no query can be suspected, but all can run.
        with suppress(OSError):
            if self._descriptor is None:
                self._descriptor = open_private(self._file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            text = queries.encode()
            # Spaces over the end of a longer list before it: they mean nothing in JSON.
            os.pwrite(self._descriptor, text.ljust(self._length), 0)
            self._length = max(self._length, len(text))
            self._is_clear = False

    def clear(self) -> None:
        """Notes that nothing runs, unless it says so already."""
        if not self._is_clear:
            self.write("[]")
            self._is_clear = True

    def close(self) -> None:
        """Removes the note."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            with suppress(OSError):
                self._file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class LastWords:
    """What ran when a run died. Without queries the run ended well, or nothing ran."""

    queries: tuple[str, ...] = ()
    reason: str | None = None
    """What the driver has seen; None: the driver died, too."""
    certain: bool = False
    """Whether one of the queries is certainly to blame."""


def last_words(state: Path) -> LastWords:
    """What the previous run has left."""
    folder = state / _FOLDER
    queries = {name for file in folder.glob("*.json") for name in _read(file)}
    death = _read(folder / _DEATH)
    return LastWords(tuple(sorted(queries)), death[0] if death else None, death[1:] == ["certain"])


def forget_last_words(state: Path) -> None:
    """Removes what the previous run has left."""
    forget(state / _FOLDER, "*")


def _read(file: Path) -> list[str]:
    """An unsynced file may be cut short or empty."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return found if isinstance(found, list) else []
