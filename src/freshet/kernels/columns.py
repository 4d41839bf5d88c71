"""The columns in front of and behind every node of a network."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from freshet.kernels.folds import compile_fold
from freshet.model import ARRIVAL, Fold, Network, Node, UserError
from freshet.model.operators import Typer


class Columns:
    """Grows with a network; numbers are never used again, so what is known of a node stays true.

    Args:
        typer: Knows the types of expressions.

    >>> from freshet.kernels.typer import KernelTyper
    >>> from freshet.model import Project, Query, QueryGraph, parse_schema
    >>> network, columns = Network(), Columns(KernelTyper())
    >>> _ = network.add(Query("q", "", QueryGraph.straight("s", [Project("q.project", (("w", "v / 2"),))])))
    >>> columns.extend(network, {"s": parse_schema("v int")})
    >>> columns.inputs[0][0].names, columns.behind[0].names
    (['v'], ['w'])
    """

    def __init__(self, typer: Typer) -> None:
        self._typer = typer
        self.inputs: dict[int, tuple[pa.Schema, ...]] = {}
        """What comes in at each port, the arrival apart."""
        self.behind: dict[int, pa.Schema] = {}
        """What is given out, the arrival apart."""
        self.states: dict[str, tuple[pa.Schema, ...]] = {}
        """The state streams of each fold by its name."""

    def extend(self, network: Network, streams: Mapping[str, pa.Schema]) -> None:
        """Takes in the nodes that are new.

        Raises:
            UserError: An operator cannot work on what comes in. Then nothing was taken in.
        """
        first = len(self.inputs)
        try:
            for node in network.nodes[first:]:
                self._take(node, streams)
        except Exception:
            self.forget(first)
            raise

    def forget(self, first: int) -> None:
        """Forgets nodes from a number on."""
        for number in [number for number in self.inputs if number >= first]:
            del self.inputs[number]
            self.behind.pop(number, None)

    def _take(self, node: Node, streams: Mapping[str, pa.Schema]) -> None:
        inputs = []
        for edge in node.edges:
            schema = self.behind.get(edge.source) if edge.source is not None else streams.get(edge.stream)
            if schema is None:
                raise UserError(f"{node.name}: there is no stream or query {edge.stream} to read")
            inputs.append(pa.schema([(field.name, field.type) for field in schema if field.name != ARRIVAL]))
        self.inputs[node.number] = tuple(inputs)
        if isinstance(node.operator, Fold):
            # It refuses what it cannot remember.
            self.states[node.name] = compile_fold(node.operator, *inputs).states
        self.behind[node.number] = node.operator.output(inputs, self._typer)

    def outputs(self, network: Network) -> dict[str, pa.Schema]:
        """The columns of the outputs of all queries."""
        return {query: self.behind[network.root(query)] for query in network}
