"""What is installed: every operator with the columns it reads and gives out, and the physical form of every chain."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from freshet.kernels import why_not
from freshet.kernels.columns import Columns
from freshet.kernels.folds.join import CompiledJoin
from freshet.kernels.parting import parted_at
from freshet.kernels.shuffling import why_never_shuffled
from freshet.kernels.typer import KernelTyper
from freshet.model import Filter, Join, Network, Operator, Project, UserError
from freshet.model.schema import with_arrival
from freshet.spark.analysis import Analysis
from freshet.spark.shuffled import compiled_join
from freshet.spark.spec import Spec

Form = Literal["vectorised", "catalyst", "shuffled"]
"""``shuffled``: a large join."""
Stage = tuple[Form, tuple[int, ...]]
"""Nodes that run in one form."""


class Installation:
    """Grows with the network; numbers are never used again, so what is known of a node stays true."""

    def __init__(self, analysis: Analysis, vectorise: bool = True, rows_out: int | None = None) -> None:
        self.network = Network()
        self.columns = Columns(KernelTyper(analysis))
        self._vectorise = vectorise
        self._rows_out = rows_out
        self._why_not: dict[int, str | None] = {}
        self._stages: dict[tuple[int, ...], tuple[Stage, ...]] = {}
        self._folds: dict[tuple[int, ...], tuple[str, ...]] = {}

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
        return Spec(tuple(node.operator for node in nodes), inputs, self._rows_out)

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

    def operators(self, numbers: Sequence[int]) -> tuple[Operator, ...]:
        """The operators of a chain."""
        return tuple(self.network.nodes[number].operator for number in numbers)

    def folds(self, numbers: tuple[int, ...]) -> tuple[str, ...]:
        """The folds that a chain goes through."""
        if numbers not in self._folds:
            self._folds[numbers] = tuple(each.name for each in self.operators(numbers) if each.remembers)
        return self._folds[numbers]

    def tables(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """The tables that a chain joins with."""
        return tuple(each.reads_table for each in self.operators(numbers) if each.reads_table is not None)

    def queries(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """The queries that need a chain."""
        return self.network.queries(numbers[0])

    def stages(self, numbers: tuple[int, ...]) -> tuple[Stage, ...]:
        """A chain, cut where its form changes."""
        if numbers not in self._stages:
            self._stages[numbers] = tuple(self._cut(numbers))
        return self._stages[numbers]

    def _cut(self, numbers: tuple[int, ...]) -> list[Stage]:
        """Filters and projections in a row have one form, and what is compiled goes together."""
        stages: list[Stage] = []
        place = 0
        while place < len(numbers):
            end = place + 1
            if self._is_stateless(numbers[place]):
                while end < len(numbers) and self._is_stateless(numbers[end]):
                    end += 1
            some = numbers[place:end]
            form = self.form(some)[0]
            if stages and stages[-1][0] == form == "vectorised":
                stages[-1] = (form, stages[-1][1] + some)
            else:
                stages.append((form, some))
            place = end
        return stages

    def form(self, numbers: Sequence[int]) -> tuple[Form, str]:
        """The physical form of a chain, or of its first piece that is not compiled, and why."""
        reasons = ((number, self._why(number)) for number in numbers)
        reason = next((f"{self.network.nodes[number].name}: {why}" for number, why in reasons if why), None)
        return ("vectorised", "all its expressions are compiled") if reason is None else ("catalyst", reason)

    def _why(self, number: int) -> str | None:
        """Why a node is not compiled; None: it is."""
        if number not in self._why_not:
            operator = self.network.nodes[number].operator
            reason = None
            if isinstance(operator, Filter | Project):
                columns = with_arrival(self.columns.inputs[number][0])
                reason = why_not((operator,), columns) if self._vectorise else "the executor was asked for it"
            self._why_not[number] = reason
        return self._why_not[number]

    def _is_stateless(self, number: int) -> bool:
        return isinstance(self.network.nodes[number].operator, Filter | Project)

    def way(self, nodes: Collection[int]) -> str:
        """How nodes would run in one step: compiled, in Spark's own form, side by side, or one job after the other."""
        others = {number for number in nodes if self._why(number) is not None}
        if not others or len(others) == len(nodes):
            return "catalyst" if others else "vectorised"
        inside = others.symmetric_difference(nodes)
        sources = ((number, source) for number in nodes for source in self.network.nodes[number].inputs)
        mixed = any((a in others and b in inside) or (a in inside and b in others) for a, b in sources)
        return "staged" if mixed else "vectorised+catalyst"

    def parted_at(self, numbers: tuple[int, ...]) -> int | None:
        """The place of the aggregate up to which a chain can run in parts; None: it cannot."""
        place = parted_at(self.operators(numbers))
        return place if place is not None and len(self.stages(numbers[: place + 1])) == 1 else None

    def is_shufflable(self, number: int) -> bool:
        """Whether a node is a join that could be shuffled."""
        operator = self.network.nodes[number].operator
        return isinstance(operator, Join) and why_never_shuffled(operator) is None

    def join(self, number: int) -> CompiledJoin:
        """A join, compiled."""
        operator = self.network.nodes[number].operator
        assert isinstance(operator, Join)
        return compiled_join(operator, *self.columns.inputs[number])
