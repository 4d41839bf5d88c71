"""Tables that are mirrors: what polls find becomes a version in the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from freshet.app.declared.spec import TableSpec
from freshet.app.declared.tables import element_column, mirror_of
from freshet.log import Log, LogFull, Malformed, TableVersions
from freshet.log.intake.conversion import convert
from freshet.sources.mirror.source import Found

if TYPE_CHECKING:
    from freshet.app.reports.types import TableReport

_LOGGER: Final = logging.getLogger(__name__)

TableRow = dict[str, Any]


class MirroredTable:
    """A table whose rows are polled: those of an element are replaced when it changes. What polls learn is committed
    with the version. A row that does not fit is left out, and the table says why."""

    def __init__(self, log: Log, spec: TableSpec) -> None:
        self.spec = spec
        self.versions = TableVersions(log, spec.name)
        self.error: str | None = None
        self.source = mirror_of(spec)
        self.source.read_from(log)
        self._log = log
        self._column = element_column(spec)
        self._found: Found | None = None
        self._rows: dict[str, list[TableRow]] = {}
        self._begin()

    def _begin(self) -> None:
        known, newest = self.versions.source(self.spec.schema), self.versions.newest()
        if known is not None and newest is not None:
            position, records = known
            self.source.restore(position)
            self.source.recall(records)
            for row in newest.to_pylist():
                self._rows.setdefault(row[self._column], []).append(row)
        else:
            self.versions.put(self._table())

    def look(self) -> None:
        """Takes up what polls have found."""
        found = self._found or self.source.found(time.time())
        if found is None:
            return
        if self._found is None:
            self._take(found)
            self._found = found
        try:
            self.versions.put(self._table(), position=found.position, records=found.records)
        except LogFull as error:
            self.error = str(error)
            return  # the same again at the next look
        self._found = None

    def _take(self, found: Found) -> None:
        self.error = None
        for change in found.changes:
            wrong = [row.reason for row in change.rows if isinstance(row, Malformed)]
            fitting, reasons = self._fitting([row for row in change.rows if not isinstance(row, Malformed)])
            for reason in (*wrong, *reasons):
                self.error = f"{change.element or 'an element'}: {reason}"
                _LOGGER.warning("table %s: %s", self.spec.name, self.error)
            if change.element is not None and (fitting or not (wrong or reasons)):
                self._rows[change.element] = fitting
        for gone in [name for name, record in found.records.items() if record is None]:
            self._rows.pop(gone, None)

    def _fitting(self, rows: Sequence[TableRow]) -> tuple[list[TableRow], list[str]]:
        """Rows with the types of the table, and why others do not fit."""
        if not rows:
            return [], []
        columns, reasons = dict[str, list[Any]](), dict[int, str]()
        for field in self.spec.schema:
            array, why = convert([row.get(field.name) for row in rows], field, "UTC")
            columns[field.name] = array.to_pylist()
            reasons = {**why, **reasons}
        places = [place for place in range(len(rows)) if place not in reasons]
        return [{name: values[place] for name, values in columns.items()} for place in places], list(reasons.values())

    def _table(self) -> pa.Table:
        rows = [row for name in sorted(self._rows) for row in self._rows[name]]
        return pa.Table.from_pylist(rows, schema=self.spec.schema)

    def close(self) -> None:
        """Ends the polls."""
        self.source.close()

    @property
    def status(self) -> TableReport:
        """For the report."""
        kept = self.versions.kept
        return {
            "versions": self.versions.number,
            "kept": kept.rows,
            "rows": sum(map(len, self._rows.values())),
            "bytes": self._log.bytes(self.versions.stream, kept.first, kept.end),
            "error": self.error,
        }
