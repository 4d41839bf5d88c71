"""Query graphs: the operators of a query and what each of them reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter

import pyarrow as pa

from freshet.model.operators import Operator, Typer
from freshet.model.schema import without_arrival


@dataclass(frozen=True)
class QueryGraph:
    """A graph of named operators that ends in one of them. ``inputs`` maps an operator's name to the operators or
    streams that it reads, one for each of its ports. The graph may have the operators ``shared`` in common with other
    queries; these are named after what they do.

    >>> from freshet.model import Filter, Project
    >>> graph = QueryGraph(
    ...     operators={"q.filter_1": Filter("q.filter_1", "v > 1"), "q.project": Project("q.project", (("k", "k"),))},
    ...     inputs={"q.filter_1": ("s",), "q.project": ("q.filter_1",)},
    ...     root="q.project",
    ... )
    >>> graph.streams, graph.order
    (('s',), ('q.filter_1', 'q.project'))
    """

    operators: Mapping[str, Operator]
    inputs: Mapping[str, tuple[str, ...]]
    root: str
    shared: frozenset[str] = frozenset()

    @classmethod
    def straight(cls, stream: str, operators: Sequence[Operator], shared: int = 0) -> QueryGraph:
        """One path over one stream, whose first operators may be ``shared``.

        >>> from freshet.model import Filter
        >>> QueryGraph.straight("s", [Filter("q.filter_1", "v > 1"), Filter("q.filter_2", "v < 9")]).inputs
        {'q.filter_1': ('s',), 'q.filter_2': ('q.filter_1',)}
        """
        names = [operator.name for operator in operators]
        inputs = {name: (source,) for name, source in zip(names, [stream, *names[:-1]], strict=True)}
        return cls({operator.name: operator for operator in operators}, inputs, names[-1], frozenset(names[:shared]))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The operators, each after those that it reads."""
        reads = {name: [each for each in inputs if each in self.operators] for name, inputs in self.inputs.items()}
        return tuple(TopologicalSorter(reads).static_order())

    @property
    def from_output(self) -> tuple[str, ...]:
        """The operators from the output on, in an order that depends on the shape of the graph alone."""
        return tuple(dict.fromkeys(self._towards(self.root)))

    def _towards(self, name: str) -> Iterator[str]:
        if name in self.operators:
            yield name
            for source in self.inputs[name]:
                yield from self._towards(source)

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the streams (or queries) that are read, each once, in order of appearance."""
        names = (name for inputs in self.inputs.values() for name in inputs if name not in self.operators)
        return tuple(dict.fromkeys(names))

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that are read, each once."""
        tables = (operator.reads_table for operator in self.operators.values())
        return tuple(dict.fromkeys(table for table in tables if table is not None))

    def schemas(self, streams: Mapping[str, pa.Schema], typer: Typer) -> dict[str, pa.Schema]:
        """The columns that each operator outputs, and those of the streams, all without the arrival."""
        known = {name: without_arrival(streams[name]) for name in self.streams}
        for name in self.order:
            known[name] = self.operators[name].output([known[source] for source in self.inputs[name]], typer)
        return known

    def output(self, streams: Mapping[str, pa.Schema], typer: Typer) -> pa.Schema:
        """The columns that it outputs, without the arrival."""
        return self.schemas(streams, typer)[self.root]
