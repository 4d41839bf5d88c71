"""Tables of a run: a thread looks at their files now and then, and new content becomes a version in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from freshet.app.declared.problems import Problem, noted, refuse
from freshet.app.declared.spec import TableSpec
from freshet.app.running.loop import Rounds
from freshet.app.running.mirrored import MirroredTable
from freshet.log import Log, LogFull, TableVersions
from freshet.model import UserError
from freshet.sources.mirror.source import MirrorSource
from freshet.sources.table_file import read_table_file

if TYPE_CHECKING:
    from freshet.app.app import App
    from freshet.app.reports.types import TableReport

LOOK: Final = 1.0
"""Seconds between looks at the files."""

_LOGGER: Final = logging.getLogger(__name__)

Stamp = tuple[int, int, int]
"""What tells that a file has changed: when it was written, its size, and which file it is."""


class WatchedTable:
    """The file of a table and its versions in the log. A file that cannot be read is refused, because there would be no
    first version."""

    def __init__(self, log: Log, spec: TableSpec) -> None:
        assert spec.file is not None
        self.spec, self._file = spec, spec.file
        self.versions = TableVersions(log, spec.name)
        self.error: str | None = None
        self._log = log
        self._taken = self._seen = _stamp(self._file)
        self._rows = 0
        self._take()

    def look(self) -> None:
        """Takes up the present content of the file, if it is new; what is wrong with it is the table's ``error``."""
        stamp = _stamp(self._file)
        if stamp == self._taken:
            return
        if stamp != self._seen:
            self._seen = stamp  # somebody may be writing it: wait until it stays the same
            return
        try:
            self._take()
            self._wrong(None)
        except UserError as error:
            self._wrong(str(error))
        except LogFull as error:
            self._wrong(str(error))
            return  # there may be room the next time
        self._taken = stamp

    def _take(self) -> None:
        rows = read_table_file(self._file, self.spec.schema, self.spec.format)
        self.versions.put(rows)
        self._rows = rows.num_rows

    def _wrong(self, error: str | None) -> None:
        if error is not None and error != self.error:
            _LOGGER.warning("table %s stays as it was: %s", self.spec.name, error)
        self.error = error

    @property
    def status(self) -> TableReport:
        """For the report."""
        kept = self.versions.kept
        size = self._log.bytes(self.versions.stream, kept.first, kept.end)
        return {
            "versions": self.versions.number,
            "kept": kept.rows,
            "rows": self._rows,
            "bytes": size,
            "error": self.error,
        }


class TableFeeds(Rounds):
    """A thread that looks at the files of an application's tables, and drops versions that no tuple needs any more.

    The constructor brings the first versions into the log, before any tuple can be taken in. ``before`` says which
    other streams hold tuples that may still meet a table.
    """

    def __init__(self, log: Log, app: App, before: Callable[[str], Iterable[str]]) -> None:
        super().__init__("freshet-tables", LOOK, self._look)
        self._streams, self._before = tuple(app.streams), before
        self._tables: dict[str, WatchedTable | MirroredTable] = {}
        problems: list[Problem] = []
        for spec in app.tables.values():
            with noted(problems, f"tables.{spec.name}.{'source' if spec.file is None else 'file'}"):
                self._tables[spec.name] = (WatchedTable if spec.file is not None else MirroredTable)(log, spec)
        refuse(problems, app.origin)

    def start(self) -> None:
        """Starts the thread, if there is something to look at."""
        if self._tables:
            super().start()

    def stop(self) -> None:
        """Ends the thread and all polls."""
        super().stop()
        for table in self._tables.values():
            if isinstance(table, MirroredTable):
                table.close()

    def mirrors(self) -> dict[str, MirrorSource]:
        """The sources of tables that are mirrors, by table."""
        return {name: table.source for name, table in self._tables.items() if isinstance(table, MirroredTable)}

    def rows(self, table: str) -> pa.Table:
        """The newest version of a table."""
        rows = self._tables[table].versions.newest()
        assert rows is not None, f"{table} has its first version since the start"
        return rows

    def states(self) -> dict[str, TableReport]:
        """For the report, by table."""
        return {name: table.status for name, table in self._tables.items()}

    def _look(self) -> None:
        for name, table in self._tables.items():
            try:
                table.look()
                if table.versions.kept.rows > 1:
                    table.versions.release(self._streams, self._before(name))
            except Exception as error:  # a full disk, say: the next look tries again
                _LOGGER.warning("table %s: %s", name, error)


def _stamp(file: Path) -> Stamp | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
