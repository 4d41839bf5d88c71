"""A recorded file that is replayed by its own timestamps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from freshet.log import Malformed
from freshet.model import Stream, UserError
from freshet.sources.files import MALFORMED, SortedRows, open_rows, why_malformed
from freshet.sources.options import LocalPath, Options
from freshet.sources.source import END_OF_TIME, Batch
from freshet.sources.times import TimeUnit, event_seconds, seconds_of


class TraceOptions(Options):
    """Options of the source kind ``trace``.

    Args:
        path: A CSV file with a header (``.csv``, ``.csv.gz``) or a Parquet file.
        time: The file's column that says when a row came.
        unit: The unit of its numbers, or ``iso`` for times as text.
        speed: How many times faster than recorded; ``"max"``: as fast as the log takes the rows.
        columns: The name in the file, for each column of the stream that has another name there.
        order: ``file``: rows come in the order of the file, none before the one above it; ``time``: sorted by time.
        shift: Moves event times so that the trace begins at the present.
        max_rows: Maximum number of rows in one batch.
    """

    path: LocalPath
    time: str
    unit: TimeUnit = "s"
    speed: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["max"] = 1.0
    columns: dict[str, str] = Field(default_factory=dict)
    order: Literal["file", "time"] = "file"
    shift: bool = False
    max_rows: int = Field(default=10_000, ge=1)


class Trace:
    """Plays a file. Rows arrive at the wall-clock time of the first poll plus their distance in the trace. Event
    times stay what the trace says, unless they are shifted to the present.

    What cannot be read is passed on as it is: the stream's intake writes it to the dead letters. After a restart
    the rows continue from then, so the time in between counts as a pause.
    """

    def __init__(self, options: TraceOptions, stream: Stream) -> None:
        self._options, self._stream = options, stream
        self._file = open_rows(options.path.expanduser())
        self._mapping = _mapping(options, stream, self._file.columns)
        self._rows = SortedRows(self._file, self._seconds) if options.order == "time" else self._file
        self._blocks: Iterator[pa.Table] | None = None
        self._row, self._used = 0, 0
        self._block: pa.Table | None = None
        self._times = self._latest = self._playing = np.empty(0)
        self._origin: float | None = None
        self._time: float | None = None
        self._shift: float | None = None
        self._anchor: float | None = None
        self._saw_time = False

    def restore(self, position: Mapping[str, Any]) -> None:
        self._row = int(position["row"])
        self._origin, self._time, self._shift = position["origin"], position["time"], position["shift"]
        self._saw_time = True

    def poll(self, now: float) -> Batch | None:
        if not self._load():
            return None
        if self._anchor is None:
            self._anchor = now - self._distance(self._time)
        due = now - self._anchor
        end = int(np.searchsorted(self._playing, due, side="right")) if not self._at_once else len(self._playing)
        end = min(end, self._used + self._options.max_rows)
        return self._batch(now, end) if end > self._used else None

    def next_due(self) -> float | None:
        if not self._load():
            return None
        if self._at_once or self._anchor is None:
            return 0.0
        return self._anchor + float(self._playing[self._used])

    def event_clock(self, now: float) -> float | None:
        """How far it has come in its own time; at the end of the file, the end of time: nothing more comes."""
        if not self._load():
            return END_OF_TIME
        event_time, speed = self._stream.event_time, self._options.speed
        if event_time is None or self._mapping[event_time] != self._options.time:
            return None
        if speed == "max" or self._anchor is None or self._origin is None or self._shift is None:
            return None
        return event_seconds(self._origin + (now - self._anchor) * speed + self._shift, self._stream)

    def close(self) -> None:
        if self._blocks is not None and hasattr(self._blocks, "close"):
            self._blocks.close()

    @property
    def _at_once(self) -> bool:
        return self._options.speed == "max"

    def _distance(self, time: float | None) -> float:
        """Seconds of playing between the beginning of the trace and a time in it."""
        if time is None or self._origin is None or self._options.speed == "max":
            return 0.0
        return (time - self._origin) / self._options.speed

    def check(self) -> None:
        """Checks the beginning of the file.

        Raises:
            UserError: The column that should say when rows came does not.
        """
        block = next(self._file.blocks(0), None)
        if block is not None:
            self._seconds(block)

    def _load(self) -> bool:
        """Makes sure that a row is at hand; returns False at the end of the file."""
        if self._blocks is None:
            self._blocks = self._rows.blocks(self._row)
        while self._block is None or self._used == self._block.num_rows:
            self._block, self._used = next(self._blocks, None), 0
            if self._block is None:
                return False
            self._times = self._seconds(self._block)
            self._playing = self._schedule(self._times)
        return True

    def _seconds(self, block: pa.Table) -> NDArray[np.float64]:
        times = seconds_of(block.column(self._options.time), self._options.unit, self._stream.time_zone)
        if not self._saw_time and np.isnan(times).all():
            sample = block.column(self._options.time)[0].as_py()
            raise UserError(
                f"file {self._options.path}: no value of column {self._options.time} is a time in the unit"
                f" {self._options.unit!r} (the first is {sample!r}): set time and unit"
            )
        self._saw_time = True
        return times

    def _schedule(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """When the rows of a block are played: never before an earlier row; a row without a time, together with it."""
        if self._origin is None:
            self._origin = float(times[~np.isnan(times)][0])
        before = self._origin if self._time is None else self._time
        self._latest = np.fmax.accumulate(np.concatenate([[before], times]))[1:]
        speed = self._options.speed
        return np.zeros(len(times)) if speed == "max" else (self._latest - self._origin) / speed

    def _batch(self, now: float, end: int) -> Batch:
        assert self._block is not None
        assert self._anchor is not None
        part = slice(self._used, end)
        if self._at_once:
            arrivals = np.full(end - self._used, round(now * 1e6), np.int64)
        else:
            arrivals = round(self._anchor * 1e6) + np.rint(self._playing[part] * 1e6).astype(np.int64)
        if self._shift is None:
            self._shift = self._anchor - (self._origin or 0.0) if self._options.shift else 0.0
        rows = self._given(self._block.slice(self._used, end - self._used), self._times[part])
        self._row += end - self._used
        self._used = end
        self._time = float(self._latest[end - 1])
        position = {"row": self._row, "origin": self._origin, "time": self._time, "shift": self._shift}
        due = self.next_due()
        return Batch(rows, arrivals, position, more=due is not None and due <= now)

    def _given(self, block: pa.Table, times: NDArray[np.float64]) -> pa.Table | list[dict[str, Any] | str]:
        """The rows as the intake gets them; lines without columns are passed as their text."""
        table = self._named(block, times)
        lines = block.column(MALFORMED)
        if lines.null_count == len(lines):
            return table
        columns = self._rows.columns
        return [
            row if line is None else Malformed(line, why_malformed(line, columns))
            for row, line in zip(table.to_pylist(), lines.to_pylist(), strict=True)
        ]

    def _named(self, block: pa.Table, times: NDArray[np.float64]) -> pa.Table:
        """The stream's columns, with the trace's times as timestamps if the stream wants them."""
        columns = {}
        for name, source in self._mapping.items():
            column = block.column(source)
            if source == self._options.time and pa.types.is_timestamp(self._stream.schema.field(name).type):
                column = self._timestamps(column, times)
            columns[name] = column
        return pa.table(columns)

    def _timestamps(self, column: pa.ChunkedArray, times: NDArray[np.float64]) -> Any:
        micros = np.rint((np.nan_to_num(times) + (self._shift or 0.0)) * 1e6).astype(np.int64)
        stamps = pa.array(micros, mask=np.isnan(times)).cast(pa.timestamp("us", tz="UTC"))
        if stamps.null_count == column.null_count:
            return stamps
        # A value that is no time stays as it was written; the intake will refuse it.
        return pc.coalesce(stamps.cast(pa.string()), column.combine_chunks().cast(pa.string()))


def _mapping(options: TraceOptions, stream: Stream, found: list[str]) -> dict[str, str]:
    """Maps each column of the stream to its column in the file."""
    what = f"file {options.path}"
    columns = f"(its columns: {', '.join(found)})"
    if options.time not in found:
        raise UserError(f"{what} has no column {options.time!r} to be the time {columns}")
    for name in options.columns:
        if name not in stream.schema.names:
            raise UserError(f"columns.{name} is not a column of stream {stream.name}")
    mapping = {}
    for name in stream.schema.names:
        default = options.time if name == stream.event_time and name not in found else name
        mapping[name] = options.columns.get(name, default)
    missing = {name: source for name, source in mapping.items() if source not in found}
    if missing:
        names = ", ".join(repr(source) for source in missing.values())
        keys = ", ".join(f"columns.{name}" for name in missing)
        raise UserError(f"{what} has no column {names} {columns}: set {keys}")
    return mapping


KINDS: Final = {"trace": (TraceOptions, Trace)}
