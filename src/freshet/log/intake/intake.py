"""The way into a stream: rows become tuples, dead letters or late rows; none vanishes."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshet.log.intake.conversion import convert, members
from freshet.log.intake.keys import OrderKeeper
from freshet.log.intake.malformed import Malformed
from freshet.log.intake.shown import clean, shown, type_name
from freshet.log.log import Log
from freshet.model import ARRIVAL, SegmentFile, Stream

Rows: TypeAlias = pa.Table | pa.RecordBatch | Sequence[Mapping[str, Any]]
"""Rows as the log takes them."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of the rows of one append: offsets [first, end), how many were set aside, and how many are in the
    stream but past its key mark."""

    first: int
    end: int
    dead: int
    late: int
    past: int = 0


class Intake:
    """Takes rows into a declared stream. There is one for each stream; any thread may use it.

    A row that does not fit the schema is a dead letter: it has a value of another type (see
    :mod:`freshet.log.intake.conversion`), a column that the stream does not have, a NULL event time, or a NULL ordered
    key. A missing column is NULL. A row is late if its event time lies more than the stream's lateness before the
    newest event time that came before it (in a row or a heartbeat). Both kinds are kept, with the reason, in JSON lines
    in the state folder. A row whose ordered key is past the mark goes into the stream; the log notes its offset.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from freshet.model import parse_schema
    >>> stream = Stream("s", parse_schema("ts timestamp, v int"), event_time="ts", lateness=10)
    >>> with tempfile.TemporaryDirectory() as folder, Log.open(Path(folder)) as log:
    ...     log.declare("s")
    ...     Intake(log, stream).append([
    ...         {"ts": "2024-01-01T00:01:00Z", "v": "7"},
    ...         {"ts": "2024-01-01T00:02:00Z", "v": "seven"},
    ...         {"ts": "2024-01-01T00:00:00Z", "v": 8},
    ...     ], arrivals=1)
    Receipt(first=0, end=1, dead=1, late=1, past=0)
    """

    def __init__(self, log: Log, stream: Stream) -> None:
        self._log = log
        self._stream = stream
        self.event_time = stream.event_time
        """Column of the stream's event time; None if its time is the arrival."""
        self._schema = stream.schema.append(pa.field(ARRIVAL, pa.int64()))
        self._keys = None if stream.order is None else OrderKeeper(log, stream.name, stream.order)
        self._lock = threading.Lock()

    def append(
        self,
        rows: Rows,
        arrivals: int | npt.NDArray[np.int64],
        source_position: Mapping[str, Any] | None = None,
        records: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Takes rows in, durably, together with the place where the source continues.

        Args:
            rows: The rows.
            arrivals: When they arrived, in microseconds since the epoch; one number, or one for each row.
            source_position: Where the source continues after a restart.
            records: What the source remembers from now on, by its keys; None for what it forgets.

        Raises:
            LogFull: There is no room; nothing was taken in.
        """
        rows = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        times = np.broadcast_to(np.asarray(arrivals, dtype=np.int64), (len(rows),))
        columns, reasons = self._columns(rows)
        with self._lock:
            late, newest = self._late(columns, reasons)
            kept = np.ones(len(rows), dtype=bool)
            kept[[*reasons, *late]] = False
            table = pa.Table.from_arrays([*columns, pa.array(times)], schema=self._schema)
            table = table if kept.all() else table.filter(pa.array(kept))
            keys = None if self._keys is None or not len(table) else self._keys.judge(table)
            offsets = self._log.append(
                self._stream.name,
                table,
                source_position=source_position,
                records=records or {},
                dead=_set_aside(rows, reasons, times),
                late=_set_aside(rows, late, times),
                newest=newest,
                watermark=self._watermark(newest, times[kept]),
                keys=None if keys is None else keys.news,
            )
            if self._keys is not None and keys is not None:
                self._keys.took(keys)
        past = 0 if keys is None else len(keys.news.past)
        return Receipt(offsets.start, offsets.stop, len(reasons), len(late), past)

    def adopt(
        self,
        files: Sequence[SegmentFile],
        *,
        newest: int | None,
        dead: Sequence[Mapping[str, Any]],
        late: Sequence[Mapping[str, Any]],
        source_position: Mapping[str, Any],
    ) -> Receipt:
        """Takes in rows that already lie in segment files and were judged by :attr:`bar` when they were written.

        Args:
            files: The files; see :meth:`Log.adopt`.
            newest: Newest event time in them, in microseconds.
            dead: Dead letters.
            late: Late rows.
            source_position: Where the source continues after a restart.
        """
        assert self._keys is None, f"{self._stream.name} has an ordered key, and tasks know no order"
        with self._lock:
            known = self._log.newest(self._stream.name)
            newest = known if newest is None else max(newest, newest if known is None else known)
            arrivals = [member[-1] for file in files for member in file.members]
            offsets = self._log.adopt(
                self._stream.name,
                files,
                source_position=source_position,
                dead=dead,
                late=late,
                newest=newest,
                watermark=self._watermark(newest, np.array(arrivals, np.int64)),
            )
        return Receipt(offsets.start, offsets.stop, len(dead), len(late))

    @property
    def bar(self) -> int | None:
        """Event time in microseconds; a row that comes now is late if it is older. None if no row is late."""
        newest, lateness = self._log.newest(self._stream.name), self._stream.lateness
        if self._stream.event_time is None or lateness is None:
            return None
        bars = [self._log.watermark(self._stream.name), None if newest is None else newest - round(lateness * 1e6)]
        return max((bar for bar in bars if bar is not None), default=None)

    def heartbeat(self, time_us: int) -> bool:
        """Says that time has come this far. Later tuples are judged by it, as if a tuple of that time had come.
        Returns False if that is not new, or if nothing is ever late.

        Args:
            time_us: Event time in microseconds since the epoch; for a stream without event time, the wall clock.
        """
        name, lateness = self._stream.name, self._stream.lateness
        if self._stream.event_time is None:
            self._log.heartbeat(name, time_us)
            return True
        with self._lock:
            known = self._log.newest(name)
            if lateness is None or (known is not None and time_us <= known):
                return False
            self._log.heartbeat(name, time_us, lateness_us=round(lateness * 1e6))
            if self._keys is not None and self._keys.column == self._stream.event_time:
                self._keys.beat(time_us - round(lateness * 1e6))
            return True

    def end_keys(self) -> None:
        """Says that no more rows come in the order of the ordered key: all of them are past the mark from now on."""
        if self._keys is not None:
            with self._lock:
                self._keys.end()

    def _watermark(self, newest: int | None, arrivals: npt.NDArray[np.int64]) -> int | None:
        """The time from which on tuples may still come after these."""
        if self._stream.event_time is None:
            return int(arrivals.max()) if len(arrivals) else None
        if self._stream.lateness is None or newest is None:
            return None
        return newest - round(self._stream.lateness * 1e6)

    def _columns(self, rows: pa.Table | Sequence[Mapping[str, Any]]) -> tuple[list[Any], dict[int, str]]:
        """The columns of the schema, and the first reason for each row that does not fit."""
        if isinstance(rows, pa.Table):
            found, reasons = rows, self._table_strangers(rows)
        else:
            found, reasons = self._mappings(rows)
        columns = []
        for field in self._stream.schema:
            column, unreadable = _column(found, field)
            reasons = {**unreadable, **reasons}
            if isinstance(column, pa.ChunkedArray):
                columns.append(column)
                continue
            array, why = convert(column, field, self._stream.time_zone)
            columns.append(array)
            reasons = {**why, **reasons}
        if self._keys is not None:
            place = self._stream.schema.names.index(self._keys.column)
            reasons = {**self._keys.refused(columns[place]), **reasons}
        return columns, self._without_event_time(columns, reasons)

    def _table_strangers(self, rows: pa.Table) -> dict[int, str]:
        names = rows.schema.names
        strange = [name for name in names if name not in self._schema.names[:-1]]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            return dict.fromkeys(range(len(rows)), f"column {twice[0]} appears twice")
        reason = f"the stream has no column {', '.join(strange)}"
        return dict.fromkeys(range(len(rows)), reason) if strange else {}

    def _mappings(self, rows: Sequence[Any]) -> tuple[Sequence[Any], dict[int, str]]:
        """The rows as plain mappings (None for a row that is no mapping), and the reasons."""
        known = set(self._stream.schema.names)
        if set(map(type, rows)) <= {dict} and _all_within(rows, known):
            return rows, {}
        found, reasons = list[Any](), dict[int, str]()
        for number, row in enumerate(rows):
            try:
                mapping, reason = _mapping(row, known)
            except Exception as error:
                mapping, reason = None, f"the row cannot be read: {type_name(error)}"
            found.append(mapping)
            if reason is not None:
                reasons[number] = reason
        return found, reasons

    def _without_event_time(self, columns: list[Any], reasons: dict[int, str]) -> dict[int, str]:
        name = self._stream.event_time
        if name is None:
            return reasons
        times = columns[self._stream.schema.names.index(name)]
        if not times.null_count:
            return reasons
        missing = np.flatnonzero(times.is_null().to_numpy(zero_copy_only=False)).tolist()
        return {**dict.fromkeys(missing, f"column {name}: the event time is NULL"), **reasons}

    def _late(self, columns: list[Any], dead: Mapping[int, str]) -> tuple[dict[int, str], int | None]:
        """Late rows, and the newest event time after all rows."""
        name = self._stream.event_time
        known = self._log.newest(self._stream.name)
        alive = np.ones(len(columns[0]), dtype=bool)
        alive[list(dead)] = False
        if name is None or not alive.any():
            return {}, known
        column = columns[self._stream.schema.names.index(name)]
        places = np.flatnonzero(alive)
        times = column.cast(pa.int64()).fill_null(0).to_numpy()[places]
        newest = np.maximum.accumulate(np.concatenate([[times[0] if known is None else known], times]))
        if self._stream.lateness is None:
            return {}, int(newest[-1])
        behind = newest[:-1] - times
        is_late = behind > round(self._stream.lateness * 1e6)
        closed = self._log.watermark(self._stream.name)
        if closed is not None:
            # It was set with a smaller lateness; windows have been closed by it.
            is_late |= times < closed
        reasons = {
            int(place): f"{lag / 1e6:g} s behind the newest event time; the lateness is {self._stream.lateness:g} s"
            for place, lag in zip(places[is_late], behind[is_late], strict=True)
        }
        return reasons, int(newest[-1])


def _all_within(rows: Sequence[dict[Any, Any]], known: set[str]) -> bool:
    try:
        return all(map(known.issuperset, rows))
    except Exception:
        return False


def _mapping(row: Any, known: set[str]) -> tuple[dict[Any, Any] | None, str | None]:
    """A row as a plain mapping, and why it does not fit if its columns say so."""
    if isinstance(row, Malformed):
        return None, clean(row.reason)
    if not isinstance(row, Mapping):
        return None, f"a row must be a mapping of columns to values, not {type_name(row)}"
    mapping = dict(row)
    strange = [name for name in mapping if name not in known]
    names = (clean(name) if isinstance(name, str) else shown(name) for name in strange)
    return mapping, f"the stream has no column {', '.join(names)}" if strange else None


def _column(rows: pa.Table | Sequence[Any], field: pa.Field) -> tuple[Any, dict[int, str]]:
    """A column as it came (chunked only if it already has the right type), and why rows do not give theirs."""
    if not isinstance(rows, pa.Table):
        values, failed = members(rows, field.name)
        return values, dict.fromkeys(failed, f"column {field.name}: it cannot be read")
    if rows.schema.names.count(field.name) != 1:
        return pa.nulls(len(rows), field.type), {}
    column = rows.column(field.name)
    if column.type == field.type and _is_valid(column):
        return column, {}
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, field.type), {}


def _is_valid(column: pa.ChunkedArray) -> bool:
    """Whether it holds what its type says: text that is not UTF-8 would be an error for every reader."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _set_aside(
    rows: pa.Table | Sequence[Mapping[str, Any]], reasons: Mapping[int, str], times: npt.NDArray[np.int64]
) -> list[dict[str, Any]]:
    places = sorted(reasons)
    found = _table_rows(rows, places) if isinstance(rows, pa.Table) else [rows[place] for place in places]
    return [
        {"arrival": int(times[place]), "reason": reasons[place], "row": row}
        for place, row in zip(places, found, strict=True)
    ]


def _table_rows(table: pa.Table, places: Sequence[int]) -> list[dict[str, Any]]:
    try:
        return table.take(pa.array(places, pa.int64())).to_pylist()  # type: ignore[no-any-return]
    except Exception:
        # Arrow cannot take rows of some types, Python has no year for some times, and some text is not UTF-8: go
        # value by value, so that the others are reported.
        columns = list(zip(table.schema.names, table.columns, strict=True))
        return [{name: _value(column, place) for name, column in columns} for place in places]


def _value(column: pa.ChunkedArray, place: int) -> Any:
    try:
        scalar = column[place]
        return scalar.as_py()
    except Exception:
        return str(_count(scalar)) if pa.types.is_temporal(column.type) else shown(scalar)


def _count(scalar: pa.Scalar) -> pa.Scalar:
    """The number of days or smaller units that a time is stored as."""
    days = pa.types.is_date32(scalar.type) or pa.types.is_time32(scalar.type)
    return scalar.cast(pa.int32() if days else pa.int64())
