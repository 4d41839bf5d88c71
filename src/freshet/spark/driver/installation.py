"""The installed operators: the columns that each reads and gives out, and the physical form of every chain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from freshet.kernels import why_not
from freshet.kernels.columns import NetworkColumns
from freshet.kernels.typer import KernelTyper
from freshet.model import Network, NetworkNode, Operator, UserError
from freshet.model.functions import OwnOperator, Vectorised, functions_in
from freshet.model.operators.codec import fields_of
from freshet.spark.driver.analysis import Analysis
from freshet.spark.driver.forms import Forms
from freshet.spark.worker.functions import Packed, packed
from freshet.spark.worker.spec import Spec

_why_not = lru_cache(maxsize=16_384)(why_not)


def _functions(operators: Iterable[Operator]) -> tuple[Packed, ...]:
    """The user's own functions that operators call."""
    texts = json.dumps([fields_of(operator) for operator in operators])
    return tuple(packed(function) for function in functions_in(texts) if isinstance(function, Vectorised | OwnOperator))


class Installation(Forms):
    """Follows the network as it grows."""

    def __init__(
        self, analysis: Analysis, vectorise: bool = True, rows_out: int | None = None, kept_bytes: int = 2**30
    ) -> None:
        super().__init__(Network(), self._reason)
        self.columns = NetworkColumns(KernelTyper(analysis))
        self._vectorise, self._rows_out, self._kept_bytes = vectorise, rows_out, kept_bytes
        self._stored: str | None = None

    def extend(self, network: Network, streams: Mapping[str, pa.Schema]) -> None:
        """Takes in the nodes that are new.

        Raises:
            UserError: One cannot run; then none was taken in.
        """
        new = self.columns.extend(network, streams)
        try:
            self._check_text(network, new)
        except UserError:
            self.columns.forget(node.number for node in new)
            raise
        self.network = network
        self.judge_anew()
        self._stored = None

    def stored(self, folder: Path) -> str:
        """Name of the spec of all nodes in a folder. It is written when it is first asked for, since a start takes in
        query after query."""
        if self._stored is None:
            self._stored = self._spec(self.network.nodes).store(folder)
        return self._stored

    def _spec(self, nodes: Sequence[NetworkNode]) -> Spec:
        inputs = tuple(self.columns.inputs.get(node.number, ()) for node in nodes)
        operators = tuple(node.operator for node in nodes)
        return Spec(operators, inputs, self._rows_out, _functions(operators), self._kept_bytes)

    def _check_text(self, network: Network, new: Sequence[NetworkNode]) -> None:
        """Refuses operators that do not survive the way to workers: they would fail all queries, not only their own."""
        spec = self._spec(new)
        try:
            found: Spec | None = Spec.parse(spec.text())
        except Exception:
            found = None
        if found != spec:
            [query, *_] = network.queries(new[-1].number)
            raise UserError(f"query {query}: it cannot be told to workers; this is a mistake in Freshet")

    def _reason(self, number: int, operator: Operator) -> str | None:
        if not self._vectorise:
            return "the executor was asked for it"
        return _why_not((operator,), self.columns.inputs[number][0])
