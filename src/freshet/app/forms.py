"""How a query runs: the graph of its own operators, or one in which shared operators stand for some of them.

Both have the same shape. So the inputs of one correspond to those of the other, in the order in which they are found
from the output on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from freshet.log import Log, ReaderState
from freshet.model import QueryGraph, state_stream
from freshet.model.network import edge_name
from freshet.model.operators.codec import fields_of, operator_of


@dataclass(frozen=True, slots=True)
class Input:
    """An input of an operator.

    Args:
        reader: Name of its cursor.
        stream: What it reads: a stream, an output, or the queue of the same name.
    """

    reader: str
    stream: str

    @property
    def is_queue(self) -> bool:
        """Whether it reads what another operator gives out."""
        return self.reader == self.stream


def input_of(graph: QueryGraph, name: str, port: int) -> Input:
    """An input of an operator of a graph."""
    sources = graph.inputs[name]
    reader, source = edge_name(name, port, len(sources)), sources[port]
    return Input(reader, reader if source in graph.operators else source)


def inputs_of(graph: QueryGraph) -> list[Input]:
    """All inputs of the operators of a graph, in an order that depends on its shape alone.

    >>> from freshet.model import Filter
    >>> graph = QueryGraph.straight("s", [Filter("q.filter_1", "v > 1"), Filter("q.filter_2", "v < 9")])
    >>> [(each.reader, each.stream) for each in inputs_of(graph)]
    [('q.filter_2', 'q.filter_2'), ('q.filter_1', 's')]
    """
    return [input_of(graph, name, port) for name in graph.from_output for port in range(len(graph.inputs[name]))]


def readers_of(log: Log, graph: QueryGraph) -> list[ReaderState]:
    """The readers that a log has of a graph: of the inputs of its operators, and of what these remember."""
    known = log.readers()
    names = [each.reader for each in inputs_of(graph)]
    for name, operator in graph.operators.items():
        number = 0
        while operator.remembers and state_stream(name, number) in known:
            names.append(state_stream(name, number))
            number += 1
    return [known[name] for name in names if name in known]


def stored(graph: QueryGraph) -> dict[str, Any]:
    """A graph as plain values."""
    operators = [fields_of(graph.operators[name]) for name in graph.from_output]
    inputs = {name: list(graph.inputs[name]) for name in graph.from_output}
    shared = {"shared": sorted(graph.shared)} if graph.shared else {}
    return {"operators": operators, "inputs": inputs, **shared}


def graph_of(values: Mapping[str, Any]) -> QueryGraph:
    """The graph of plain values.

    >>> from freshet.model import Filter
    >>> graph = QueryGraph.straight("s", [Filter("shared:1f", "v > 1"), Filter("q.filter_2", "v < 9")], shared=1)
    >>> graph_of(stored(graph)) == graph
    True
    """
    operators = [operator_of(fields) for fields in values["operators"]]
    inputs = {name: tuple(sources) for name, sources in values["inputs"].items()}
    by_name = {operator.name: operator for operator in operators}
    return QueryGraph(by_name, inputs, operators[0].name, frozenset(values.get("shared", ())))
