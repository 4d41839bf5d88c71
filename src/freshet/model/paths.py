"""The paths of a query: its graph, cut into the ways that tuples take from a stream to the output.

A join is on a path of each of its inputs, as one of its sides, and a union is on none: whatever stands behind either of
them is on several paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from freshet.model.graph import QueryGraph
from freshet.model.operators import PORTS, Filter, Fold, Join, Operator, Project, Union

AGAIN = "~"
"""Separates the name of an operator from its number, where a graph has several of one name."""

Some = TypeVar("Some", bound=Operator)


@dataclass(frozen=True, slots=True)
class Path:
    """One way of a tuple through a query: from a stream, through operators, to the query's output.

    Paths that meet in a fold (the two sides of a join, the members of a UNION under an aggregate) share its state.
    """

    query: str
    stream: str
    operators: tuple[Operator, ...]
    nodes: tuple[str, ...] = field(default=(), compare=False)
    """Names of the operators in the graph."""

    @property
    def folds(self) -> tuple[Fold, ...]:
        """Its operators that remember, in order."""
        return tuple(operator for operator in self.operators if isinstance(operator, Fold))

    @property
    def stateless(self) -> tuple[Filter | Project, ...]:
        """Its filters and projections up to the first other operator; all, where there is none."""
        plain: list[Filter | Project] = []
        for operator in self.operators:
            if not isinstance(operator, Filter | Project):
                break
            plain.append(operator)
        return tuple(plain)


def paths_of(query: str, graph: QueryGraph) -> tuple[Path, ...]:
    """The paths of a query, those of a join's left input first, those of a union in the order of its members.

    >>> from freshet.model import Filter, QueryGraph
    >>> union = QueryGraph({"q.a": Filter("q.a", "v"), "q.union": Union("q.union")},
    ...                    {"q.a": ("s",), "q.union": ("q.a", "t")}, "q.union")
    >>> [(path.stream, path.nodes) for path in paths_of("q", union)]
    [('s', ('q.a',)), ('t', ())]
    """
    return tuple(Path(query, stream, operators, nodes) for stream, operators, nodes in _routes(graph, graph.root))


def _routes(graph: QueryGraph, node: str) -> Iterator[tuple[str, tuple[Operator, ...], tuple[str, ...]]]:
    operator = graph.operators.get(node)
    if operator is None:
        yield node, (), ()
        return
    for port, source in enumerate(graph.inputs[node]):
        for stream, operators, nodes in _routes(graph, source):
            if isinstance(operator, Union):
                yield stream, operators, nodes
            else:
                here = operator.side(PORTS[port]) if isinstance(operator, Join) else _plain(operator)
                yield stream, (*operators, here), (*nodes, node)


def _plain(operator: Some) -> Some:
    name, again, _ = operator.name.partition(AGAIN)
    return replace(operator, name=name) if again else operator
