"""A compiled chain of filters and projections."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import NamedTuple

import pyarrow as pa

from freshet.kernels.arrow import encode
from freshet.kernels.compiler import Compiler
from freshet.kernels.frame import Frame
from freshet.kernels.logic import boolean
from freshet.kernels.node import Node
from freshet.kernels.survivors import Survivors
from freshet.kernels.unsupported import Unsupported
from freshet.model import ARRIVAL, Filter, Project


class ChainOutput(NamedTuple):
    """What a chain made of a train.

    Args:
        batch: The tuples that came out, with their arrival as last column.
        passed: Tuples that came out of each operator.
        nanos: Nanoseconds spent in each operator; work that chains share is charged to the first.
        errors: Evaluation errors of the tuples that reached the failing operator.
        failure: Set where the chain raised; its batch is then empty.
    """

    batch: pa.RecordBatch
    passed: tuple[int, ...]
    nanos: tuple[int, ...]
    errors: int = 0
    failure: str | None = None


class CompiledChain:
    """The nodes of a chain's operators.

    Args:
        operators: Filters and projections, in their order.
        schema: Columns of the input, ARRIVAL last.
        compiler: Of the input's columns; chains over the same input share it, and with it what they compute.
    """

    __slots__ = ("_empty", "_kinds", "_steps", "schema")

    def __init__(self, operators: Sequence[Filter | Project], schema: pa.Schema, compiler: Compiler) -> None:
        self._steps: list[Node | list[Node]] = []
        for operator in operators:
            if isinstance(operator, Filter):
                self._steps.append(boolean(compiler.text(operator.predicate), "filter"))
                continue
            if not isinstance(operator, Project):
                raise Unsupported(type(operator).__name__.upper())
            nodes = [compiler.text(text) for _, text in operator.columns]
            nodes.append(compiler.resolve(ARRIVAL))
            names = [*(name for name, _ in operator.columns), ARRIVAL]
            self._steps.append(nodes)
            schema = pa.schema([pa.field(n, node.kind) for n, node in zip(names, nodes, strict=True)])
            compiler = Compiler([(field.name, field.type) for field in schema])
        self.schema = schema
        self._kinds = tuple(schema.types)
        self._empty = schema.empty_table().to_batches() or [
            pa.RecordBatch.from_arrays([pa.array([], kind) for kind in self._kinds], schema=schema)
        ]

    def run(self, frame: Frame) -> ChainOutput:
        """Runs the operators over the tuples of a frame."""
        survivors = Survivors(frame)
        passed, nanos = [], []
        start = perf_counter_ns()
        for step in self._steps:
            if survivors.count:
                if isinstance(step, Node):
                    survivors.keep(step)
                else:
                    survivors.project(step)
            passed.append(survivors.count)
            now = perf_counter_ns()
            nanos.append(now - start)
            start = now
        batch = self._batch(survivors)
        if nanos:
            nanos[-1] += perf_counter_ns() - start
        return ChainOutput(batch, tuple(passed), tuple(nanos), survivors.errors)

    def failed(self, failure: str) -> ChainOutput:
        """The output of a run that raised."""
        nothing = (0,) * len(self._steps)
        return ChainOutput(self._empty[0], nothing, nothing, 0, failure)

    def _batch(self, survivors: Survivors) -> pa.RecordBatch:
        if not survivors.count:
            return self._empty[0]
        frame = survivors.gather()
        arrays = [encode(frame.column(number), kind) for number, kind in enumerate(self._kinds)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
