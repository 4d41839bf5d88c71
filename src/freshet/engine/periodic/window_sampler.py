"""The sampler: a query's own operators over random samples of its windows, in this process (RT §4.2, §5.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.engine.protocols import TrainSource
from freshet.kernels import CompiledFold, compile_fold
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.running import fold_ports
from freshet.kernels.superbox.pipeline import Memory
from freshet.kernels.superbox.superbox import Superbox
from freshet.kernels.typer import KernelTyper
from freshet.kernels.union import unite
from freshet.log import StoredVersion, read_train
from freshet.log.segments.sums import Checks
from freshet.model import Fold, InstanceInput, InstanceView, Network, Operator, Project, View, version_stream
from freshet.model.schema import without_arrival
from freshet.quality.periodic.managed import Sampled
from freshet.quality.periodic.profiled import planned_operators
from freshet.quality.periodic.query_model import PlannedOperator, ProfiledRun

_MOST_COMPILED: Final = 1024
"""Maximum number of operators that are kept compiled."""
_MOMENT: Final = 1
"""The event time at which all tuples of a sample are there."""


class WindowSampler:
    """Takes random tuples of an instance's windows, without replacement, and runs the compiled operators over them. It
    maps the segments that hold the windows, and asks Spark for nothing: a job would cost as much as a step.

    An aggregate ends the sample: the number of its groups says nothing about a larger number of tuples. Operators that
    are not sampled, and all operators of a query that only Spark can evaluate, have the selectivities of earlier
    instances.

    Args:
        network: The operators.
        log: Says where the tuples lie.
        folder: Where segment files are.
        seed: Draws the samples.
    """

    def __init__(self, network: Network, log: TrainSource, folder: Path, seed: int = 0) -> None:
        self._network, self._log, self._folder = network, log, folder
        self._random = np.random.default_rng(seed)
        self._box = lru_cache(_MOST_COMPILED)(_box)
        self._fold = lru_cache(_MOST_COMPILED)(_fold)

    def sample(self, view: View, instance: InstanceView, sizes: Mapping[str, int]) -> Sampled | None:
        """What operators do to these numbers of tuples; None: only Spark can evaluate them."""
        began = perf_counter()
        try:
            runs = self._runs(planned_operators(view, instance), instance, sizes)
        except (Unsupported, FileNotFoundError):  # what a window needs is kept, unless the disk was full
            return None
        return Sampled(tuple(runs), perf_counter() - began)

    def _runs(
        self, operators: Sequence[PlannedOperator], instance: InstanceView, sizes: Mapping[str, int]
    ) -> list[ProfiledRun]:
        windows = {each.reader: each for each in instance.inputs}
        comes: dict[str, pa.Table] = {}
        runs: list[ProfiledRun] = []
        chosen = self._chosen(operators, sizes)
        if all(isinstance(operator, Project) for operator in chosen.values()):
            return runs  # a projection gives out what it reads
        for each, operator in chosen.items():
            if not all(name in windows or name in comes for name in each.inputs):
                continue
            rows = [windows[name].rows if name in windows else comes[name].num_rows for name in each.inputs]
            if not all(rows):
                continue
            share = min(1.0, sizes[each.name] / sum(rows))
            tables = [
                self._window(windows[name], share) if name in windows else self._some(comes[name], share)
                for name in each.inputs
            ]
            run, comes[each.name] = self._run(each.name, operator, tables)
            runs.append(run)
        return runs

    def _chosen(
        self, operators: Sequence[PlannedOperator], sizes: Mapping[str, int]
    ) -> dict[PlannedOperator, Operator]:
        """The operators that are to be sampled, without aggregates and all behind them."""
        found: dict[PlannedOperator, Operator] = {}
        ended: set[str] = set()
        for each in operators:
            operator = self._network.nodes[int(each.name)].operator
            if ended.isdisjoint(each.inputs) and not (operator.remembers and len(each.inputs) == 1):
                found |= {each: operator} if each.name in sizes else {}
            else:
                ended.add(each.name)
        return found

    def _window(self, window: InstanceInput, share: float) -> pa.Table:
        # Whoever answers the instance checks the segments.
        train = self._log.train(window.stream, window.first, window.end)
        return self._some(read_train(self._folder, train, checks=Checks.NEVER), share)

    def _some(self, table: pa.Table, share: float) -> pa.Table:
        size = round(share * table.num_rows)
        if size >= table.num_rows:
            return table
        return table.take(np.sort(self._random.choice(table.num_rows, size, replace=False, shuffle=False)))

    def _run(self, name: str, operator: Operator, tables: Sequence[pa.Table]) -> tuple[ProfiledRun, pa.Table]:
        began = perf_counter()
        out = self._passed(operator, tables[0]) if len(tables) == 1 else self._joined(operator, tables)
        rows = tuple(table.num_rows for table in tables)
        return ProfiledRun(name, rows, out.num_rows, perf_counter() - began), out

    def _passed(self, operator: Operator, table: pa.Table) -> pa.Table:
        begun = self._box(operator, table.schema).begin(table)[0]
        if begun.failure is not None:
            raise Unsupported(begun.failure)
        made = begun.finish({}, self._tables(operator)).table
        return pa.Table.from_batches([made]) if isinstance(made, pa.RecordBatch) else made

    def _joined(self, operator: Operator, tables: Sequence[pa.Table]) -> pa.Table:
        schemas = tuple(without_arrival(table.schema) for table in tables)
        if not isinstance(operator, Fold):
            return unite(tables, operator.output(schemas, KernelTyper()))
        fold = self._fold(operator, schemas)
        nothing = [schema.empty_table() for schema in fold.states]
        ports = len(tables)
        return fold_ports(tables, Memory.of(fold, nothing, (None,) * ports, (_MOMENT,) * ports))[0]

    def _tables(self, operator: Operator) -> dict[str, list[StoredVersion]]:
        if operator.reads_table is None:
            return {}
        kept = self._log.versions(version_stream(operator.reads_table))
        return {operator.reads_table: [StoredVersion(self._folder, segment) for segment in kept.segments]}


def _box(operator: Operator, schema: pa.Schema) -> Superbox:
    return Superbox(((operator,),), schema)


def _fold(operator: Operator, schemas: tuple[pa.Schema, ...]) -> CompiledFold:
    return compile_fold(operator, *schemas)
