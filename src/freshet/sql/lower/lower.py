"""From what a query asks for to what runs: windows, joins and aggregates become folds, joins with tables lookups.

A fold is an operator that remembers (:mod:`freshet.model.operators.fold`). Before it comes one projection to
plain columns, behind it the filters and the projection that turn its rows into the answer.

What has no effect disappears: a window that nothing is computed over, projections of sub-queries, unread columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from freshet.model.graph import QueryGraph
from freshet.model.operators import Filter, Operator, Project, Union
from freshet.model.query import Query
from freshet.sql.flows.aggregate import aggregate_flow, distinct_flow, set_flow
from freshet.sql.flows.flow import Flow, Order, TimeKind, Want, refuse_table
from freshet.sql.flows.join import JoinFlow
from freshet.sql.flows.keyed import join_flow
from freshet.sql.flows.lookup import LookupFlow
from freshet.sql.flows.own import OwnFlow
from freshet.sql.flows.stateless import FilterFlow, ProjectFlow, StreamFlow, UnionFlow
from freshet.sql.flows.window import WindowFlow
from freshet.sql.flows.wiring import Wiring
from freshet.sql.lower.graph import GraphBuilder
from freshet.sql.lower.logical import Aggregate, Applied, Distinct, LogicalJoin, SetOperation, Window
from freshet.sql.parse.errors import SqlError, TextPlace
from freshet.sql.parse.text import column, parse_expression

TimeColumns = Mapping[str, str | None] | None
"""Column of event time of each stream and query that has a time; None: the arrival."""


def lower(
    query: Query,
    graph: GraphBuilder,
    times: TimeColumns,
    orders: Mapping[str, Order],
    ends: Collection[str],
    changes: TextPlace | None = None,
    in_pairs: bool = False,
    ordered: Mapping[str, str] | None = None,
) -> Query:
    """A query as it runs: its operators, and what is known of the times and the order of its output.

    The root of its graph is the node that gives out its answer. ``times``, ``orders`` and ``ends`` are those of
    :func:`~freshet.sql.build_query`. ``changes`` is the place of EMIT CHANGES: a window's rows come each time that they
    change. ``in_pairs``: streams are joined two at a time. ``ordered``: the ordered keys of streams.

    Raises:
        SqlError: A part has no meaning without a bound, or is not run.
    """
    flow = Lowering(graph, times, orders, ends, in_pairs, ordered or {}).flow(query.graph.root)
    refuse_table(
        flow,
        "a continuous query reads a stream; join one with it, as in FROM s JOIN {0} ON s.k = {0}.k",
        graph.tables.get(flow.traits.table or ""),
    )
    event_time = next((name for name in flow.traits.names if name.lower() in flow.traits.events), None)
    return replace(
        query,
        graph=_run_graph(query, graph, flow, event_time, changes),
        event_time=event_time,
        has_time=event_time is not None or flow.traits.clock == "arrival",
        order=None if changes is not None else flow.traits.order,
        ends=event_time is not None and flow.traits.events[event_time.lower()],
    )


def _run_graph(
    query: Query, graph: GraphBuilder, flow: Flow, event_time: str | None, changes: TextPlace | None
) -> QueryGraph:
    runs_as_it_is = {name: each for name, each in graph.operators.items() if isinstance(each, Operator)}
    if len(runs_as_it_is) == len(graph.operators) and changes is None:
        return QueryGraph(runs_as_it_is, graph.inputs, query.graph.root)
    wiring = Wiring()
    columns = tuple((name, column(name)) for name in flow.traits.names)
    end = flow.emit(Want(f"{query.name}.project", columns, time=event_time), wiring)
    if changes is not None:
        _tell_changes(wiring, end, changes)
    return wiring.graph(end)


@dataclass(frozen=True, slots=True)
class Lowering:
    """Flows of the nodes of a graph."""

    graph: GraphBuilder
    times: TimeColumns
    orders: Mapping[str, Order]
    ends: Collection[str]
    in_pairs: bool
    ordered: Mapping[str, str]

    def flow(self, node: str) -> Flow:
        """The flow of a node."""
        operator = self.graph.operators.get(node)
        if operator is None:
            return self._stream(node)
        sources, place = self.graph.inputs[node], self.graph.places[node]
        inputs = [self.flow(source) for source in sources]
        match operator:
            case Filter():
                return FilterFlow(node, parse_expression(operator.predicate), inputs[0])
            case Project():
                columns = [(name, parse_expression(text)) for name, text in operator.columns]
                return ProjectFlow(columns, inputs[0])
            case Union():
                return UnionFlow(node, inputs, place)
            case Window():
                name = "the sub-query" if sources[0] in self.graph.operators else sources[0]
                return self.window(operator, inputs[0], name)
            case Aggregate():
                return aggregate_flow(operator, inputs[0], place)
            case Distinct():
                return distinct_flow(node, inputs[0], place)
            case SetOperation():
                return set_flow(node, operator.kind, inputs, place)
            case Applied():
                return OwnFlow(operator, self.graph.relations[sources[0]].columns, inputs[0], place)
            case LogicalJoin():
                return self._join(operator, (inputs[0], inputs[1]))

    def window(self, window: Window, child: Flow, source: str) -> Flow:
        """The flow of a window; ``source`` is what people call what it is over."""
        return WindowFlow(window, child, source, self.graph.places[window.name])

    def _stream(self, name: str) -> Flow:
        columns = self.graph.relations[name].columns
        if name in self.graph.tables:
            return StreamFlow(name, columns, "none", None, table=True)
        time = None if self.times is None else self.times.get(name)
        by_arrival = self.times is None or (time is None and name in self.times)
        clock: TimeKind = "arrival" if by_arrival else "none" if time is None else "event"
        order, ends = self.orders.get(name, ()), name in self.ends
        return StreamFlow(name, columns, clock, time, order=order, ends=ends, ordered=self.ordered.get(name))

    def _join(self, join: LogicalJoin, inputs: tuple[Flow, Flow]) -> Flow:
        columns = self.graph.relations[join.name].columns
        table = next((side.traits.table for side in inputs if side.traits.table is not None), None)
        if table is not None:
            return LookupFlow(join, columns, inputs, self.graph.relations[table].columns)
        first, second = inputs
        # A join follows another one directly only if both are of the same FROM.
        if isinstance(first, JoinFlow) and first.join.kind == join.kind == "inner" and not self.in_pairs:
            return join_flow(first.join.with_next(join), columns, (*first.inputs, second))
        return join_flow(join, columns, inputs)


def _tell_changes(wiring: Wiring, node: str, place: TextPlace) -> None:
    """Makes the last folds in front of a node tell their changes."""
    operator = wiring.operators.get(node)
    changing = None if operator is None else operator.with_changes()
    if changing is not None:
        wiring.operators[node] = changing
    elif operator is None or operator.remembers:
        raise SqlError(
            "EMIT CHANGES is for an aggregate over a window with a SLIDE, as in [RANGE 1 MINUTE SLIDE 10 SECONDS]; "
            "everything else gives its rows at once anyway",
            place,
        )
    else:
        for source in wiring.inputs[node]:
            _tell_changes(wiring, source, place)
