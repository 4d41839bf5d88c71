"""The input and output columns of every node of a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean

import pyarrow as pa

from freshet.kernels.folds import compile_fold
from freshet.model import Network, NetworkNode, UserError
from freshet.model.operators import Typer
from freshet.model.schema import row_bytes, without_arrival


class NetworkColumns:
    """Follows a network as it grows.

    Args:
        typer: Knows the types of expressions.

    >>> from freshet.kernels.typer import KernelTyper
    >>> from freshet.model import Project, Query, QueryGraph, parse_schema
    >>> network, columns = Network(), NetworkColumns(KernelTyper())
    >>> _ = network.add(Query("q", "", QueryGraph.straight("s", [Project("q.project", (("w", "v / 2"),))])))
    >>> _ = columns.extend(network, {"s": parse_schema("v int")})
    >>> columns.inputs[0][0].names, columns.behind[0].names
    (['v'], ['w'])
    >>> columns.sizes(0)
    (12.0, 16.0)
    """

    def __init__(self, typer: Typer) -> None:
        self._typer = typer
        self._nodes: dict[int, NetworkNode] = {}
        self.inputs: dict[int, tuple[pa.Schema, ...]] = {}
        """Columns that come in at each port, without the arrival."""
        self.behind: dict[int, pa.Schema] = {}
        """Columns that each node gives out, without the arrival."""

    def extend(self, network: Network, streams: Mapping[str, pa.Schema]) -> list[NetworkNode]:
        """Adds the nodes that are new, and returns them.

        Raises:
            UserError: An operator cannot work on its input. Then no node was added.
        """
        new = network.new_to(self._nodes)
        self.forget(node.number for node in new)
        try:
            for node in new:
                self._take(node, streams)
        except Exception:
            self.forget(node.number for node in new)
            raise
        return new

    def forget(self, numbers: Iterable[int]) -> None:
        """Forgets the nodes that had these numbers."""
        for number in numbers:
            self._nodes.pop(number, None)
            self.inputs.pop(number, None)
            self.behind.pop(number, None)

    def _take(self, node: NetworkNode, streams: Mapping[str, pa.Schema]) -> None:
        inputs = []
        for edge in node.queues:
            schema = self.behind.get(edge.source) if edge.source is not None else streams.get(edge.stream)
            if schema is None:
                raise UserError(f"{node.name}: there is no stream or query {edge.stream} to read")
            inputs.append(without_arrival(schema))
        self._nodes[node.number] = node
        self.inputs[node.number] = tuple(inputs)
        if node.operator.remembers:
            # Compiling refuses what cannot be remembered.
            states = compile_fold(node.operator, *inputs).states
            assert len(states) == node.operator.states, f"{node.name} has {len(states)} state streams"
        self.behind[node.number] = node.operator.output(inputs, self._typer)

    def sizes(self, node: int) -> tuple[float, float]:
        """Bytes of a row that comes in at a node, the mean over its ports, and of a row that it gives out."""
        return fmean(map(row_bytes, self.inputs[node])), row_bytes(self.behind[node])

    def outputs(self, network: Network) -> dict[str, pa.Schema]:
        """The columns of the outputs of all queries."""
        return {query: self.behind[network.root(query)] for query in network}
