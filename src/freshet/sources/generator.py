"""Made-up tuples that arrive by a process of your choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from freshet.arrivals import ArrivalCursor
from freshet.model import Stream, UserError
from freshet.sources.arrival import ArrivalOptions, PoissonArrival, Rate
from freshet.sources.column import Column, default_column
from freshet.sources.columns import AnyColumn, EventTimeColumn
from freshet.sources.options import Options
from freshet.sources.source import Batch


class GeneratorOptions(Options):
    """Options of the source kind ``generator``.

    Args:
        rate: Tuples a second with Poisson arrivals; the short form of ``arrival = {kind = "poisson", rate = ...}``.
        arrival: The arrival process.
        seed: The same seed makes the same tuples.
        limit: How many tuples to make; without it there is no end.
        max_rows: Maximum number of tuples in one batch.
        columns: How the values of columns are made; a column without an entry gets a default by its type.
    """

    rate: Rate | None = None
    arrival: ArrivalOptions | None = None
    seed: int = Field(default=0, ge=0)
    limit: Annotated[int, Field(ge=0)] | None = None
    max_rows: int = Field(default=10_000, ge=1)
    columns: dict[str, AnyColumn] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_process(self) -> GeneratorOptions:
        if (self.rate is None) == (self.arrival is None):
            raise ValueError("give either rate or arrival")
        return self


class Generator:
    """Makes tuples: tuple ``i`` always has the same values, whatever the batches are, and after a restart.

    Time 0 of the arrival process is the first poll. After a restart arrivals continue from then, so the time in
    between counts as a pause. A changed arrival process starts from its own time 0; the tuples continue anyway.

    >>> from freshet.model import parse_schema
    >>> stream = Stream("s", parse_schema("id bigint, v double"))
    >>> source = Generator(GeneratorOptions.model_validate(
    ...     {"arrival": {"kind": "constant", "rate": 10}, "columns": {"id": {"kind": "sequence"}}}), stream)
    >>> source.poll(1000.0) is None
    True
    >>> source.poll(1000.25).rows["id"].to_pylist(), round(source.next_due(), 3)
    ([0, 1], 1000.3)
    """

    def __init__(self, options: GeneratorOptions, stream: Stream) -> None:
        unknown = set(options.columns) - set(stream.schema.names)
        if unknown:
            raise UserError(
                f"columns.{min(unknown)} is not a column of stream {stream.name}"
                f" (columns: {', '.join(stream.schema.names)})"
            )
        self._options, self._schema, self._event_time = options, stream.schema, stream.event_time
        arrival = options.arrival or PoissonArrival(rate=options.rate or 0.0)
        self._arrival = arrival.model_dump(mode="json") | {"seed": options.seed}
        self._process = arrival.process(options.seed)
        self._cursor: ArrivalCursor = self._process.cursor()
        self._columns = {
            field.name: Column(
                field.name,
                field.type,
                options.columns.get(field.name) or default_column(field.name, field.type),
                options.seed,
            )
            for field in stream.schema
        }
        self._index, self._time = 0, 0.0
        self._anchor: float | None = None

    def restore(self, position: Mapping[str, Any]) -> None:
        self._index = int(position["index"])
        if position["arrival"] == self._arrival:
            self._cursor = self._process.cursor(position["arrivals"])
            self._time = float(position["time"])
        for name, column in self._columns.items():
            column.restore(self._index, position["carry"].get(name))

    def poll(self, now: float) -> Batch | None:
        if self._anchor is None:
            self._anchor = now - self._time
        seconds = self._cursor.take_until(now - self._anchor, self._room())
        if not len(seconds):
            return None
        arrivals = round(self._anchor * 1e6) + np.rint(seconds * 1e6).astype(np.int64)
        table = pa.table(
            [column.take(self._index, len(seconds), arrivals, seconds) for column in self._columns.values()],
            schema=self._schema,
        )
        self._index += len(seconds)
        self._time = float(seconds[-1])
        due = self.next_due()
        return Batch(table, arrivals, self._position(), more=due is not None and due <= now)

    def next_due(self) -> float | None:
        due = self._cursor.peek()
        if due is None or self._room() <= 0:
            return None
        return 0.0 if self._anchor is None else self._anchor + due

    def event_clock(self, now: float) -> float | None:
        options = None if self._event_time is None else self._columns[self._event_time].options
        if not isinstance(options, EventTimeColumn) or self._anchor is None:
            return None
        return options.clock(now, now - self._anchor)

    def close(self) -> None:
        """Has nothing to close."""

    def _room(self) -> int:
        limit = self._options.limit
        return self._options.max_rows if limit is None else min(limit - self._index, self._options.max_rows)

    def _position(self) -> dict[str, Any]:
        return {
            "index": self._index,
            "time": self._time,
            "arrival": self._arrival,
            "arrivals": self._cursor.position,
            "carry": {name: column.carry(self._index) for name, column in self._columns.items()},
        }


KINDS: Final = {"generator": (GeneratorOptions, Generator)}
