"""From a query graph to paths: windows, joins and aggregates become folds, joins with tables lookups.

A fold is what remembers (:mod:`freshet.model.fold`). In front of it stands one projection to plain columns, behind it
the filters and the projection that make the answer of what it gives out.

What has no effect disappears: a window that nothing is computed over, projections of sub-queries, columns that nobody
reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from freshet.model.fold import Panes
from freshet.model.lookup import Lookup
from freshet.model.operator import Aggregate, Distinct, Filter, Join, Project, SetOperation, Union, Window
from freshet.model.query import Path, PathOperator
from freshet.sql.errors import Place, SqlError
from freshet.sql.flows.aggregate import aggregate_flow, distinct_flow, set_flow
from freshet.sql.flows.flow import Flow, Order, Strand, Want, refuse_table
from freshet.sql.flows.join import JoinFlow
from freshet.sql.flows.lookup import LookupFlow
from freshet.sql.flows.stateless import FilterFlow, ProjectFlow, StreamFlow, UnionFlow
from freshet.sql.flows.window import WindowFlow
from freshet.sql.graph import GraphBuilder
from freshet.sql.text import column, parse_expression

Times = Mapping[str, str | None] | None
"""Column of event time of each stream and query that has a time; None: the arrival."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A query as paths.

    Args:
        paths: Its paths; None: it has no part that remembers, and its graph tells them.
        event_time: Column of its output that carries event time.
        has_time: Whether its output has a time: that column, or the arrival.
        order: Columns within which the order of its output is one of the log (:attr:`Query.order`).
        ends: Whether that column is the end of a window (:attr:`Query.ends`).
    """

    paths: tuple[Path, ...] | None
    event_time: str | None
    has_time: bool
    order: Order
    ends: bool


def lower(
    query: str,
    graph: GraphBuilder,
    root: str,
    times: Times,
    orders: Mapping[str, Order],
    ends: Collection[str],
    changes: Place | None = None,
) -> Lowered:
    """The paths of a query.

    Args:
        query: Its name.
        graph: Its graph.
        root: The node that gives out its answer.
        times: The time of what it reads; None: all go by the arrival. What is not in it has no time.
        orders: The order of what it reads; what is not in it comes in that of the log.
        ends: What of it goes by the ends of windows.
        changes: Where EMIT CHANGES stands: a window's rows come each time that they change.

    Raises:
        SqlError: A part has no meaning without a bound, or is not run.
    """
    flow = _Lowering(graph, times, orders, ends).flow(root)
    refuse_table(
        flow,
        "a continuous query reads a stream; join one with it, as in FROM s JOIN {0} ON s.k = {0}.k",
        graph.tables.get(flow.traits.table or ""),
    )
    shown = {name.lower(): name for name in flow.traits.names}
    event_time = next((shown[name] for name in shown if name in flow.traits.events), None)
    has_time = event_time is not None or flow.traits.clock == "arrival"
    is_end = event_time is not None and flow.traits.events[event_time.lower()]
    order = None if changes is not None else flow.traits.order
    simple = all(isinstance(operator, Filter | Project | Union) for operator in graph.operators.values())
    if simple and changes is None:
        return Lowered(None, event_time, has_time, order, is_end)
    columns = tuple((name, column(name)) for name in flow.traits.names)
    strands = flow.emit(Want(f"{query}.project", columns, time=event_time))
    if changes is not None:
        strands = tuple(replace(strand, operators=_with_changes(strand, changes)) for strand in strands)
    paths = tuple(Path(query, strand.stream, strand.operators) for strand in strands)
    return Lowered(paths, event_time, has_time, order, is_end)


class _Lowering:
    """Flows of the nodes of a graph."""

    def __init__(self, graph: GraphBuilder, times: Times, orders: Mapping[str, Order], ends: Collection[str]) -> None:
        self._graph = graph
        self._times = times
        self._orders = orders
        self._ends = ends

    def flow(self, node: str) -> Flow:
        """The flow of a node."""
        operator = self._graph.operators.get(node)
        if operator is None:
            return self._stream(node)
        inputs = [self.flow(name) for name in self._graph.inputs[node]]
        note = self._graph.notes.get(node, ())
        place = note[0] if note else None
        match operator:
            case Filter():
                return FilterFlow(node, parse_expression(operator.predicate), inputs[0])
            case Project():
                columns = [(name, parse_expression(text)) for name, text in operator.columns]
                return ProjectFlow(columns, inputs[0])
            case Union():
                return UnionFlow(inputs, place)
            case Window():
                return WindowFlow(operator, inputs[0], self._source(self._graph.inputs[node][0]), place)
            case Aggregate():
                return aggregate_flow(operator, inputs[0], place)
            case Distinct():
                return distinct_flow(node, inputs[0], place)
            case SetOperation():
                return set_flow(node, operator.kind, inputs, place)
            case Join():
                return self._join(operator, (inputs[0], inputs[1]), note)

    def _stream(self, name: str) -> Flow:
        columns = self._graph.relations[name].columns
        if name in self._graph.tables:
            return StreamFlow(name, columns, "none", None, table=True)
        order = self._orders.get(name, ())
        if self._times is None or self._times.get(name, "") is None:
            return StreamFlow(name, columns, "arrival", None, order=order)
        time = self._times.get(name)
        return StreamFlow(
            name, columns, "none" if time is None else "event", time, order=order, ends=name in self._ends
        )

    def _source(self, node: str) -> str:
        return "the sub-query" if node in self._graph.operators else node

    def _join(self, join: Join, inputs: tuple[Flow, Flow], places: tuple[exp.Expr | None, ...]) -> Flow:
        columns = self._graph.relations[join.name].columns
        left, right = places
        condition = self._graph.conditions.get(join.name)
        for table in (side.traits.table for side in inputs):
            if table is not None:
                schema = self._graph.relations[table].columns
                return LookupFlow(join, condition, columns, inputs, schema, (left, right))
        return JoinFlow(join, condition, columns, inputs, (left, right))


def _with_changes(strand: Strand, place: Place) -> tuple[PathOperator, ...]:
    """The operators with the last fold telling its changes."""
    stateless = (Filter, Project, Lookup)
    places = [place for place, operator in enumerate(strand.operators) if not isinstance(operator, stateless)]
    last = strand.operators[places[-1]] if places else None
    if not isinstance(last, Panes):
        raise SqlError(
            "EMIT CHANGES is for an aggregate over a window with a SLIDE, as in [RANGE 1 MINUTE SLIDE 10 SECONDS]; "
            "everything else tells its rows at once anyway",
            place,
        )
    return (*strand.operators[: places[-1]], replace(last, emit="changes"), *strand.operators[places[-1] + 1 :])
