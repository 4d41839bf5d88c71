"""The network: all operators of all queries of an application, as one graph."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, Literal

from freshet.model.errors import UserError
from freshet.model.names import version_stream
from freshet.model.operators import Filter, Operator
from freshet.model.query import Query

_NOTHING: Final = Filter("", "true")
"""Stands where a number is free."""

EdgeKind = Literal["stream", "output", "queue", "table"]
"""What an edge reads: a declared stream, the output of a query, what another node outputs, or a table.

An edge that reads a table carries no tuples and nothing waits there: tuples that come in at another edge look up the
version that they meet."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One input of a node, with a cursor of its own.

    Args:
        node: The node that reads.
        port: Which of its inputs this is.
        kind: What it reads.
        stream: The stream of the log that its queue is a range of. Each edge between two nodes has a stream of its own.
        reader: Name of the cursor, stable over restarts.
        source: The node whose output comes in; None if the edge reads a stream, an output or a table.
    """

    node: int
    port: int
    kind: EdgeKind
    stream: str
    reader: str
    source: int | None = None


@dataclass(frozen=True, slots=True)
class NetworkNode:
    """An operator in its place.

    Args:
        number: Place in :attr:`Network.nodes`; steps name operators by it.
        name: Unique and stable over restarts.
        operator: What it does.
        edges: Its inputs: one for each port, and behind these the tables that it reads.
        query: The query that it belongs to; empty if it is shared.
    """

    number: int
    name: str
    operator: Operator
    edges: tuple[Edge, ...]
    query: str

    @property
    def queues(self) -> tuple[Edge, ...]:
        """Those of its edges that carry tuples, one for each port."""
        return tuple(edge for edge in self.edges if edge.kind != "table")

    @property
    def tables(self) -> tuple[str, ...]:
        """The streams with the versions of the tables that it reads."""
        return tuple(edge.stream for edge in self.edges if edge.kind == "table")

    @property
    def inputs(self) -> tuple[int, ...]:
        """The nodes whose output it reads."""
        return tuple(edge.source for edge in self.edges if edge.source is not None)


class Network:
    """A graph with one node for each operator, whatever the number of queries that need it.

    An operator that is in several queries under the same name is one node. The nodes of a dropped query stay in
    place until their numbers are set free for others. A node has a greater number than those that it reads.

    >>> from freshet.model import Filter, Project, Query, QueryGraph
    >>> def query(name, common):
    ...     project = Project(f"{name}.project", (("v", "v"),))
    ...     return Query(name, "", QueryGraph({common: Filter(common, "v > 1"), project.name: project},
    ...                                       {common: ("s",), project.name: (common,)}, project.name, {common}))
    >>> network = Network()
    >>> network.add(query("a", "shared:1f")), network.add(query("b", "shared:1f"))
    ((0, 1), (0, 2))
    >>> [(edge.kind, edge.stream) for node in network.nodes for edge in node.edges]
    [('stream', 's'), ('queue', 'a.project'), ('queue', 'b.project')]
    >>> [edge.node for edge in network.readers(0)], network.queries(0), network.outputs(2)
    ([1, 2], ('a', 'b'), ('b',))
    >>> [node.query for node in network.nodes]
    ['', 'a', 'b']
    """

    def __init__(self) -> None:
        self.nodes: list[NetworkNode] = []
        self._free: list[int] = []
        """Numbers that may be used again, in order."""
        self._live: dict[str, int] = {}
        self._members: dict[str, tuple[int, ...]] = {}
        self._queries: dict[int, tuple[str, ...]] = {}
        self._readers: dict[int, tuple[Edge, ...]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def add(self, query: Query) -> tuple[int, ...]:
        """Takes a query in; returns the numbers of its nodes, each after those that it reads."""
        if query.name in self._members:
            raise UserError(f"query {query.name} already exists")
        numbers = tuple(self._node(name, query) for name in query.graph.order)
        assert query.graph.order[-1] == query.graph.root, f"an operator of {query.name} does not lead to its output"
        self._members[query.name] = numbers
        for number in numbers:
            self._queries[number] = (*self._queries.get(number, ()), query.name)
        return numbers

    def _node(self, name: str, query: Query) -> int:
        operator, inputs = query.graph.operators[name], query.graph.inputs[name]
        if name in self._live:
            assert self.nodes[self._live[name]].operator == operator, f"two operators are called {name}"
            return self._live[name]
        number = self._number(self._live[each] for each in inputs if each in query.graph.operators)
        edges = tuple(self._edge(number, name, port, inputs, query) for port in range(len(inputs)))
        if operator.reads_table is not None:
            versions = version_stream(operator.reads_table)
            edges += (Edge(number, len(inputs), "table", versions, versions),)
        node = NetworkNode(number, name, operator, edges, "" if name in query.graph.shared else query.name)
        self.nodes[number : number + 1] = [node]
        self._live[name] = number
        for edge in edges:
            if edge.source is not None:
                self._readers[edge.source] = (*self._readers.get(edge.source, ()), edge)
        return number

    def _number(self, sources: Iterable[int]) -> int:
        place = bisect_right(self._free, max(sources, default=-1))
        return self._free.pop(place) if place < len(self._free) else len(self.nodes)

    def _edge(self, number: int, name: str, port: int, inputs: tuple[str, ...], query: Query) -> Edge:
        reader, source = edge_name(name, port, len(inputs)), inputs[port]
        if source in query.graph.operators:
            return Edge(number, port, "queue", reader, reader, self._live[source])
        return Edge(number, port, "output" if source in self._members else "stream", source, reader)

    def of(self, query: str) -> tuple[int, ...]:
        """The nodes of a query, each after those that it reads."""
        return self._members[query]

    def root(self, query: str) -> int:
        """The node whose output is that of a query: all others lead to it."""
        return self._members[query][-1]

    def queries(self, node: int) -> tuple[str, ...]:
        """The queries that need a node; none if all of them were dropped."""
        return self._queries.get(node, ())

    def outputs(self, node: int) -> tuple[str, ...]:
        """The queries whose output a node gives."""
        return tuple(query for query in self.queries(node) if self.root(query) == node)

    def readers(self, node: int) -> tuple[Edge, ...]:
        """The edges that read a node."""
        return self._readers.get(node, ())

    def writes(self, node: int) -> tuple[str, ...]:
        """The streams that a node writes to if its readers do not run in the same step."""
        return (*self.outputs(node), *(edge.stream for edge in self.readers(node)))

    def new_to(self, known: Mapping[int, NetworkNode]) -> list[NetworkNode]:
        """The nodes that are not yet ``known`` by number, each after those that it reads."""
        newest = (self.nodes[number] for number in reversed(self._live.values()))
        return list(takewhile(lambda node: known.get(node.number) is not node, newest))[::-1]

    def drop(self, query: str) -> tuple[int, ...]:
        """Forgets a query; returns the nodes that nobody needs any more. Their numbers stay taken."""
        numbers = self._members.pop(query)
        for number in numbers:
            self._queries[number] = tuple(name for name in self._queries[number] if name != query)
        gone = tuple(number for number in numbers if not self._queries[number])
        for number in gone:
            del self._live[self.nodes[number].name]
            for source in self.nodes[number].inputs:
                self._readers[source] = tuple(edge for edge in self._readers[source] if edge.node != number)
        return gone

    def free(self, numbers: Iterable[int]) -> None:
        """Frees the numbers of nodes that nobody needs and no running unit names."""
        for number in numbers:
            assert not self.queries(number), f"{self.nodes[number].name} is needed"
            self.nodes[number] = NetworkNode(number, "", _NOTHING, (), "")
            insort(self._free, number)


def edge_name(node: str, port: int, ports: int) -> str:
    """Name of the cursor of an edge, and of its queue if it has one.

    >>> edge_name("q.project", 0, 1), edge_name("q.join_1", 1, 2)
    ('q.project', 'q.join_1:1')
    """
    return node if ports == 1 else f"{node}:{port}"
