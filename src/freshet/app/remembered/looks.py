"""Records of the optimizer's looks: two files of a state folder, the newer one and the one before it.

Other processes may read them at any time. They explain, and decide nothing: so they are not synced, and a line that a
crash has cut off is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from freshet.log.store.private import open_private
from freshet.quality.optimizer import Look

_NEWER: Final = "looks.jsonl"
_OLDER: Final = "looks.old.jsonl"
MOST_BYTES: Final = 2**20
"""Maximum size of each of the two files, so that thousands of looks are kept, but never more."""


class LookRecord(NamedTuple):
    """A look at a query."""

    query: str
    look: Look


class LookWriter:
    """Appends records of looks; the oldest go when there are too many.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = LookWriter(Path(folder))
    ...     writer.add("q", Look(7.0, 3.0, "segment", "pcs", "best", scores={"segment": 0.25, "pcs": 1.0}))
    ...     [(each.query, each.look.to) for each in read_looks(Path(folder))]
    [('q', 'pcs')]
    """

    def __init__(self, state: Path, most_bytes: int = MOST_BYTES) -> None:
        self._newer, self._older, self._most = state / _NEWER, state / _OLDER, most_bytes
        self._size: int | None = None

    def add(self, query: str, look: Look) -> None:
        """Appends a record."""
        line = (json.dumps({"query": query, **look.record()}, separators=(",", ":")) + "\n").encode()
        if self._size is None:
            self._size = self._begin()
        if self._size + len(line) > self._most:
            self._newer.replace(self._older)
            self._size = 0
        with os.fdopen(open_private(self._newer, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "wb") as file:
            file.write(line)
        self._size += len(line)

    def _begin(self) -> int:
        """The size of the file that is there; a line that a crash cut off is ended."""
        try:
            content = self._newer.read_bytes()
        except FileNotFoundError:
            return 0
        if content and not content.endswith(b"\n"):
            with self._newer.open("ab") as file:
                file.write(b"\n")
        return len(content)


def read_looks(state: Path) -> Iterator[LookRecord]:
    """All looks that are kept, oldest first; none if there were none."""
    for name in (_OLDER, _NEWER):
        try:
            lines = (state / name).read_bytes().splitlines()
        except FileNotFoundError:
            continue
        for line in lines:
            try:
                record = json.loads(line)
                yield LookRecord(record.pop("query"), Look.read(record))
            except (ValueError, TypeError, KeyError, AttributeError):
                continue  # a crash has cut it off, or another version has written it
