"""Checking the queries of an application without Spark: order, text, and what each one reads and writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Final

import pyarrow as pa
from sqlglot import exp

from freshet.app.declared.join_memory import with_bounds
from freshet.app.declared.problems import Problem
from freshet.app.declared.spec import QuerySpec
from freshet.model import Project, Query, QueryGraph, Stream, UserError
from freshet.model.join_buffer import with_buffer
from freshet.model.promises.quality_table import WrongTable
from freshet.sql import OwnFunctions, SqlError, SqlTyper, build_query
from freshet.sql.parse.text import shared_query
from freshet.sql.value import value_over

_VALUE: Final = "value: "
"""Beginning of what is said of the value of a query."""


@dataclass(slots=True)
class Catalog:
    """What a query may read, and what is known of that."""

    streams: Mapping[str, Stream]
    tables: Mapping[str, pa.Schema]
    schemas: dict[str, pa.Schema] = field(default_factory=dict)
    """Columns of streams and outputs; the type is null if only Spark knows it."""
    times: dict[str, str | None] = field(default_factory=dict)
    """By name, the event-time column that windows can go by; None: they go by the arrival."""
    orders: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """By output, the columns within which its rows keep an order of the log; None: they keep none."""
    ends: set[str] = field(default_factory=set)
    """Queries whose event time is the end of a window."""
    functions: OwnFunctions = field(default_factory=OwnFunctions)
    """What it may call besides Spark's functions."""

    def __post_init__(self) -> None:
        self.schemas = {name: stream.schema for name, stream in self.streams.items()} | self.schemas
        self.times = {name: stream.event_time for name, stream in self.streams.items()} | self.times

    def learn(self, query: Query) -> None:
        """Records what is known of the rows of a query, except their columns."""
        name = query.name
        self.orders[name] = query.order
        (self.ends.add if query.ends else self.ends.discard)(name)
        self.times.pop(name, None)
        if query.has_time:
            self.times[name] = query.event_time

    def with_outputs(self, queries: Collection[str]) -> Catalog:
        """The same with the outputs of these queries alone."""
        schemas = {name: schema for name, schema in self.schemas.items() if name in queries}
        return replace(self, schemas=schemas, times={name: self.times[name] for name in queries if name in self.times})

    def build(self, spec: QuerySpec, *, in_pairs: bool = False) -> Query:
        """The query of a declaration with a valid text; :meth:`check` says whether it can run. ``in_pairs``: it joins
        streams two at a time."""
        query = build_query(
            spec.name,
            spec.sql,
            {**self.schemas, **self.tables},
            promises=spec.promises,
            start=spec.start,
            on_error=spec.on_error,
            times=self.times,
            tables=self.tables,
            orders=self.orders,
            ends=self.ends,
            functions=self.functions,
            ordered={name: stream.order.column for name, stream in self.streams.items() if stream.order is not None},
            in_pairs=in_pairs,
        )
        query = with_buffer(query, spec.join_buffer)
        return with_bounds(query, spec.join_memory) if spec.is_bounded else query

    def check(self, query: Query) -> None:
        """Refuses what cannot run: windows that never end, some joins with tables."""
        _check_lateness(query, self.streams)
        query.promises.quality.check(query.name, query.graph.streams)
        if query.promises.value is not None:
            _check_value(query, query.promises.value, self.schemas)
        if query.graph.tables:
            # Kernels take a while to load, and few applications need them here.
            from freshet.kernels.table_join import check_lookups

            check_lookups(query.graph, self.schemas, SqlTyper())


@dataclass(slots=True)
class Checked(Catalog):
    """What the check found."""

    queries: dict[str, Query] = field(default_factory=dict)
    """The queries that can run, each after those that it reads."""
    problems: list[Problem] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    """Names that nothing more can be checked of."""


def check_queries(catalog: Catalog, specs: Mapping[str, QuerySpec], broken: frozenset[str] = frozenset()) -> Checked:
    """Checks queries over streams and tables; the problems of those in ``broken`` are known already."""
    checked = Checked(catalog.streams, catalog.tables, functions=catalog.functions, broken=set(broken))
    reads = {name: _reads_of(spec.sql) & (specs.keys() | broken) for name, spec in specs.items()}
    for name in _in_order(reads, checked):
        spec = specs[name]
        if reads[name] & checked.broken:
            checked.broken.add(name)
            continue
        try:
            query = checked.build(spec)
            checked.check(query)
            checked.schemas[name] = query.graph.output(checked.schemas, SqlTyper())
            checked.queries[name] = query
            checked.learn(query)
        except UserError as error:
            # The place says already which query it is.
            text = str(error).removeprefix(f"query {name}").lstrip(",: ") if isinstance(error, SqlError) else str(error)
            key = "value" if text.startswith(_VALUE) else "quality" if isinstance(error, WrongTable) else "sql"
            checked.problems.append(Problem(f"queries.{name}.{key}", text.removeprefix(_VALUE)))
            checked.broken.add(name)
    return checked


def _check_lateness(query: Query, streams: Mapping[str, Stream]) -> None:
    """Refuses windows of time over a stream that never says when its windows are complete."""
    # The windows of a periodic query go by the arrival, whatever the event time of its streams is.
    for name in () if query.is_periodic else timed_streams(query.graph):
        stream = streams.get(name)
        if stream is not None and stream.event_time is not None and stream.lateness is None:
            raise UserError(
                f"a window over {stream.name} ends when no older tuple can come, so the stream must say how late they "
                f"come: declare its lateness, such as lateness = '10 seconds', or '0 s' if {stream.event_time} "
                "never goes back"
            )


def _check_value(query: Query, value: str, schemas: Mapping[str, pa.Schema]) -> None:
    """Refuses a value that no input of a query has the columns for, or that the kernels cannot compute."""
    from freshet.kernels.superbox.program import why_not

    found = False
    for stream in query.graph.streams:
        try:
            over = value_over(value, schemas[stream])
        except SqlError as error:
            raise UserError(f"{_VALUE}{error.problem}") from None
        if over is not None:
            found = True
            why = why_not([Project("value", (("value", over),))], schemas[stream])
            if why is not None:
                raise UserError(f"{_VALUE}only Spark can compute {value} ({why}): use a simpler expression")
    if not found:
        names = ", ".join(f"{stream} ({', '.join(schemas[stream].names)})" for stream in query.graph.streams)
        raise UserError(f"{_VALUE}no input has all columns of {value}: they are {names}")


def timed_streams(graph: QueryGraph) -> list[str]:
    """The streams whose time some operator of a query goes by."""
    timed: dict[str, bool] = {}
    for name in reversed(graph.order):
        goes_by_time = graph.operators[name].goes_by_time
        if graph.operators[name].ordered_by is not None:
            continue  # behind it, its key takes the place of time
        for source in graph.inputs[name]:
            timed[source] = timed.get(source, False) or timed.get(name, False) or goes_by_time
    return [stream for stream in graph.streams if timed.get(stream)]


def may_share(query: Query, schemas: Mapping[str, pa.Schema]) -> bool:
    """Whether a query may share operators: if only Spark knows some types, its graph is uncertain before the start."""
    return not any(pa.types.is_null(kind) for stream in query.graph.streams for kind in schemas[stream].types)


def _reads_of(sql: str) -> set[str]:
    """Names in the FROMs of a query; none if its text cannot be parsed (the check says why).

    >>> sorted(_reads_of("SELECT v FROM s UNION ALL SELECT v FROM q"))
    ['q', 's']
    """
    try:
        tree = shared_query(sql)
    except UserError:
        return set()
    own = {part.alias for part in tree.find_all(exp.CTE)}
    names = {table.name for table in tree.find_all(exp.Table)}
    calls = (call for table in tree.find_all(exp.Table) for call in table.find_all(exp.Anonymous))
    return (names | {first.name for call in calls for first in call.expressions[:1]}) - own


def _in_order(reads: Mapping[str, set[str]], checked: Checked) -> list[str]:
    """Every query after those that it reads; a circle is a problem, and the queries behind it are left out."""
    remaining = dict(reads)
    while True:
        try:
            return [name for name in TopologicalSorter(remaining).static_order() if name in remaining]
        except CycleError as error:
            circle = list(dict.fromkeys(reversed(error.args[1])))
            text = f"reads its own output: {' reads '.join([*circle, circle[0]])}"
            checked.problems.append(Problem(f"queries.{circle[0]}.sql", text))
            checked.broken.update(circle)
            remaining = {name: names for name, names in remaining.items() if name not in circle}
