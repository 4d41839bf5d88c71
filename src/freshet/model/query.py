"""Continuous queries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from freshet.model.curve import Curve
from freshet.model.errors import NotRunnable, UserError
from freshet.model.graph import QueryGraph
from freshet.model.paths import Path, paths_of


@dataclass(frozen=True, slots=True)
class Query:
    """A continuous query with what was promised to it.

    Args:
        name: Names the query and its output stream.
        text: The SQL as the user wrote it.
        graph: Its operators; none for a periodic query, whose windows are cut at its releases.
        weight: Importance in (0, 1] (FAS §4.4).
        start: Where a new query begins to read: ``earliest`` or ``latest``.
        on_error: ``null``: an evaluation error gives NULL and is counted; ``fail``: it quarantines the query.
        period: Seconds between releases of a periodic query (RT §2.2).
        deadline: Seconds after release by which an instance should be answered.
        curve: What its answers are worth by their latency (CAR §4.2); None: the same at any latency.
        hidden: Whether it is work that other queries share, which nobody reads for itself.
        event_time: Column of its output that carries event time.
        has_time: Whether a window over its output is possible: by ``event_time``, or by the arrival where that is None.
        order: Columns (lower case) of its output such that rows which are equal in all of them come in an order of the
            log, not of the schedule; none: all rows do. None: there is no such order.
        ends: Whether ``event_time`` is the end of a window for which the row stands: a window with a slide over the
            output takes such a row into the window that this end is in.
    """

    name: str
    text: str
    graph: QueryGraph
    weight: float = 1.0
    start: Literal["earliest", "latest"] = "earliest"
    on_error: Literal["null", "fail"] = "null"
    period: float | None = None
    deadline: float | None = None
    columns: tuple[str, ...] = field(default=())
    curve: Curve | None = None
    hidden: bool = False
    event_time: str | None = None
    has_time: bool = True
    order: tuple[str, ...] | None = ()
    ends: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.weight <= 1.0:
            raise UserError(f"query {self.name}: weight {self.weight} is outside (0, 1]")

    @property
    def paths(self) -> tuple[Path, ...]:
        """Its runnable paths; raises :class:`NotRunnable` where a part is left to a later version."""
        if self.period is not None:
            raise NotRunnable(f"query {self.name}: PERIOD is parsed and checked, but not run by this version")
        return paths_of(self.name, self.graph)
