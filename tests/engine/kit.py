"""Queries over streams of one kind, in process; and queries that share all their operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from freshet.app import App
from freshet.app.declared.spec import QuerySpec, StreamSpec, TableSpec
from freshet.log import Retention
from freshet.model import Promises, Query, QueryGraph, Stream, parse_schema
from freshet.model.promises.promise import Missed
from freshet.policies import Everything, Policy
from freshet.policies.periodic.levels import LevelManager
from freshet.testing import LocalRun

SCHEMA = parse_schema("ts timestamp, k string, v int")
STREAMS = ("s", "t", "u")
LATENESS = 2.0
KEEP = Retention(history_age=None, history_bytes=None)

Row = tuple[float, str | None, int | None]


def by_content(query: Query, root: bool = False) -> Query:
    """A query whose operators, but for the last one unless ``root`` says so, are called after what they do: those that
    do the same in several queries are one node."""
    graph = query.graph
    names: dict[str, str] = {}
    for name in graph.order:
        if root or name != graph.root:
            read = [names.get(source, source) for source in graph.inputs[name]]
            what = repr((replace(graph.operators[name], name=""), read))
            names[name] = f"shared:{sha256(what.encode()).hexdigest()[:12]}"
    called = {name: names.get(name, name) for name in graph.operators}
    operators = {called[name]: replace(each, name=called[name]) for name, each in graph.operators.items()}
    inputs = {called[name]: tuple(called.get(each, each) for each in read) for name, read in graph.inputs.items()}
    return replace(query, graph=QueryGraph(operators, inputs, called[graph.root], frozenset(names.values())))


class Application(LocalRun):
    """Streams ``s``, ``t``, ``u`` with event time, or others, and queries over them.

    Args:
        queries: Texts by name.
        policy: Decides; None: all runs at once.
        slots: Units at once.
        event_time: Whether the streams go by their column ``ts``; else by the arrival.
        streams: Other streams.
        retention: Of the streams.
        tables: First contents of tables.
        share: Whether operators that do the same are one, those that give the output of a query apart; ``"root"``:
            these, too.
        periodic: Which instance of periodic queries runs first.
        missed: What becomes of releases that they miss.
        levels: Says what instances keep; None: everything.
        stopwatch: Tells the time to instances that run in parts; None: none does.
        options: More for :class:`LocalRun`.
    """

    def __init__(
        self,
        queries: Mapping[str, str],
        policy: Policy | None = None,
        *,
        slots: int = 1,
        event_time: bool = True,
        streams: Collection[Stream] | None = None,
        retention: Retention = KEEP,
        tables: Mapping[str, pa.Table] | None = None,
        share: bool | Literal["root"] = False,
        periodic: str = "edf",
        missed: Missed = "skip",
        levels: LevelManager | None = None,
        stopwatch: Callable[[], float] | None = None,
        **options: Any,
    ) -> None:
        self._share, self._levels, self._stopwatch = share, levels, stopwatch
        app = App("tests", periodic=periodic)
        time = ("ts", "UTC", None, LATENESS) if event_time else ()
        for stream in streams or [Stream(name, SCHEMA, *time) for name in STREAMS]:
            app.streams[stream.name] = StreamSpec(stream, retention=retention)
        for name, rows in (tables or {}).items():
            app.tables[name] = TableSpec(name, Path(name), rows.schema)
        promises = Promises(missed=missed, overload=("defer", "thin") if levels else ("defer",))
        for name, text in queries.items():
            app.queries[name] = QuerySpec(name, text, promises)
        super().__init__(app, policy=policy or Everything(), workers=slots, tables=tables, **options)

    def _start(self, policy: str | Policy | None) -> None:
        super()._start(policy)
        if self._levels is not None:
            self.engine._periodic.levels = self._levels
        self.executor.stopwatch = self._stopwatch

    def form(self, query: Query) -> Query:
        shares = self._share and not query.is_periodic
        return by_content(query, self._share == "root") if shares else query

    @property
    def now(self) -> int:
        """How far the arrivals have come, in microseconds."""
        return self._at

    def append(self, stream: str, rows: Sequence[Row], arrival: int = 1) -> None:
        """Appends rows ``(seconds, k, v)``."""
        self.push(stream, [{"ts": at, "k": k, "v": v} for at, k, v in rows], at=arrival / 1e6)

    def run(self) -> None:
        """Runs until nothing is left to do; no query may fail."""
        idle = self.drain()
        assert self.stopped == {}
        assert idle

    def tuples(self, stream: str) -> list[tuple[Any, ...]]:
        """All tuples of a stream in their order."""
        return [tuple(row.values()) for row in self.rows(stream)]

    def answers(self, query: str) -> Counter[tuple[Any, ...]]:
        """All tuples of an output, each as often as it is there."""
        return Counter(self.tuples(query))

    def states(self) -> dict[str, int]:
        """Live rows by state stream."""
        return {
            stream: self.queues.end(stream) - low
            for fold in self.engine.board.folds()
            if fold.queries
            for stream, low in fold.lows.items()
        }
