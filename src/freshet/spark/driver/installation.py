"""What is installed: every operator with the columns it reads and gives out, and the physical form of every chain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import pyarrow as pa

from freshet.kernels import why_not
from freshet.kernels.columns import Columns
from freshet.kernels.typer import KernelTyper
from freshet.model import Filter, Network, Operator, Project, UserError
from freshet.model.functions import RowWise, Vectorised, functions_in
from freshet.model.operators.codec import fields_of
from freshet.spark.driver.analysis import Analysis
from freshet.spark.driver.forms import Forms
from freshet.spark.worker.functions import Packed, packed
from freshet.spark.worker.spec import Spec


def _functions(operators: Iterable[Operator]) -> tuple[Packed, ...]:
    """The user's own functions that operators call."""
    texts = json.dumps([fields_of(operator) for operator in operators])
    return tuple(packed(function) for function in functions_in(texts) if isinstance(function, Vectorised | RowWise))


class Installation(Forms):
    """Grows with the network; numbers are never used again, so what is known of a node stays true."""

    def __init__(self, analysis: Analysis, vectorise: bool = True, rows_out: int | None = None) -> None:
        super().__init__(Network(), self._reason)
        self.columns = Columns(KernelTyper(analysis))
        self._vectorise, self._rows_out = vectorise, rows_out

    def extend(self, network: Network, streams: Mapping[str, pa.Schema]) -> Spec:
        """Takes in the nodes that are new.

        Raises:
            UserError: One cannot run; then none was taken in.
        """
        known = len(self.columns.inputs)
        self.columns.extend(network, streams)
        try:
            self._check_text(network, known)
        except UserError:
            self.columns.forget(known)
            raise
        self.network = network
        return self._spec(network, 0)

    def _spec(self, network: Network, first: int) -> Spec:
        nodes = network.nodes[first:]
        inputs = tuple(self.columns.inputs[node.number] for node in nodes)
        operators = tuple(node.operator for node in nodes)
        return Spec(operators, inputs, self._rows_out, _functions(operators))

    def _check_text(self, network: Network, first: int) -> None:
        """Refuses what workers would not read as it is: that would fail for every query, not only for the one."""
        spec = self._spec(network, first)
        try:
            found: Spec | None = Spec.parse(spec.text())
        except Exception:
            found = None
        if found != spec:
            [query, *_] = network.queries(len(network.nodes) - 1)
            raise UserError(f"query {query}: it cannot be told to workers; this is a mistake in Freshet")

    def _reason(self, number: int, operator: Filter | Project) -> str | None:
        if not self._vectorise:
            return "the executor was asked for it"
        return why_not((operator,), self.columns.inputs[number][0])
