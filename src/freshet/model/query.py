"""Continuous queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from freshet.model.graph import QueryGraph
from freshet.model.promises.promise import Promises
from freshet.model.scheduling.instance import InputWindow

Start = Literal["earliest", "latest"]
"""Where a new reader begins."""


@dataclass(frozen=True, slots=True)
class Query:
    """A continuous query with what was promised to it.

    Args:
        name: Names the query and its output stream.
        text: The SQL as the user wrote it.
        graph: Its operators.
        promises: What was promised to it.
        start: Where a new query begins to read: ``earliest`` or ``latest``.
        on_error: ``null``: an evaluation error gives NULL and is counted; ``fail``: it quarantines the query.
        columns: Names of its output columns.
        event_time: Column of its output that carries event time.
        has_time: Whether a window over its output is possible: by ``event_time``, or by the arrival if that is None.
        order: Columns (lower case) of its output. The log alone, not the schedule, decides the order of rows that are
            equal in all of them; without any column, that of all rows. None: there are no such columns.
        windows: Of a periodic query: what an instance sees at each edge from a stream or an output, by the name of the
            edge's cursor.
        join_memory: Maximum number of bytes that its joins by ordered keys may remember; None: what the application
            leaves it, if that has a bound.
        join_buffer: How its joins by ordered keys buffer; see :data:`~freshet.model.join_buffer.JoinBuffer`.
        ends: Whether ``event_time`` is the end of the window that a row stands for. A sliding window over the output
            then takes the row into the window that this end is in.
    """

    name: str
    text: str
    graph: QueryGraph
    promises: Promises = field(default_factory=Promises)
    start: Start = "earliest"
    on_error: Literal["null", "fail"] = "null"
    columns: tuple[str, ...] = ()
    event_time: str | None = None
    has_time: bool = True
    order: tuple[str, ...] | None = ()
    ends: bool = False
    windows: Mapping[str, InputWindow] = field(default_factory=dict)
    join_memory: int | None = None
    join_buffer: Literal["auto", "ram", "sorted", "log", "hybrid"] = "auto"

    @property
    def is_periodic(self) -> bool:
        """Whether it answers once per release."""
        return self.promises.period is not None
