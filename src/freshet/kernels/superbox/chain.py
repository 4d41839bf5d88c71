"""A compiled chain of filters and projections."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from time import perf_counter_ns
from typing import NamedTuple

import pyarrow as pa

from freshet.kernels.expressions.arrow import encode
from freshet.kernels.expressions.compiler import Compiler
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import Node
from freshet.kernels.expressions.rules.logic import boolean
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Index, Value
from freshet.kernels.superbox.surviving_rows import Survivors
from freshet.model import ARRIVAL, Operator


class ChainOutput(NamedTuple):
    """The output of a chain for a train.

    Args:
        batch: The tuples that came out, with their arrival as last column.
        passed: Number of tuples that came out of each operator.
        nanos: Nanoseconds spent in each operator. A shared expression is charged to the first chain that uses it; a
            common projection is charged to each chain in proportion to its rows.
        errors: Number of evaluation errors of the tuples that reached the failing operator.
        failure: The error, if the chain raised one; its batch is then empty.
    """

    batch: pa.RecordBatch
    passed: tuple[int, ...]
    nanos: tuple[int, ...]
    errors: int = 0
    failure: str | None = None


class Selected(NamedTuple):
    """The rows that passed the filters at the beginning of a chain, with figures for each filter."""

    survivors: Survivors
    passed: list[int]
    nanos: list[int]

    def places(self) -> Index | None:
        """Numbers of the rows that are left; None if none or all are left, because then there is nothing to gather."""
        return self.survivors.gather().index if self.survivors.count else None


class CompiledChain:
    """The nodes of a chain's operators.

    Args:
        operators: Filters and projections, in their order.
        schema: Columns of the input, ARRIVAL last.
        compiler: Compiler of the input's columns. Chains over the same input share it, and so share equal expressions.
    """

    __slots__ = ("_empty", "_filters", "_kinds", "_rest", "_steps", "alike", "schema")

    def __init__(self, operators: Sequence[Operator], schema: pa.Schema, compiler: Compiler) -> None:
        steps: list[Node | list[Node]] = []
        inner = Compiler(())
        for operator in operators:
            if operator.keeps is not None:
                steps.append(boolean(compiler.text(operator.keeps), "filter"))
                continue
            if operator.makes is None:
                raise Unsupported(type(operator).__name__.upper())
            nodes = [compiler.text(text) for _, text in operator.makes]
            nodes.append(compiler.resolve(ARRIVAL))
            names = [*(name for name, _ in operator.makes), ARRIVAL]
            steps.append(nodes)
            schema = pa.schema([pa.field(n, node.kind) for n, node in zip(names, nodes, strict=True)])
            inner.release()
            compiler = inner = Compiler([(field.name, field.type) for field in schema])
        inner.release()
        self.schema = schema
        self._steps = steps
        self._filters = list(takewhile(lambda step: isinstance(step, Node), steps))
        self._rest = steps[len(self._filters) :]
        self.alike = self._likeness()
        """Equal for chains whose outputs can be made together; None: this chain runs by itself."""
        self._kinds = tuple(schema.types)
        self._empty = schema.empty_table().to_batches() or [
            pa.RecordBatch.from_arrays([pa.array([], kind) for kind in self._kinds], schema=schema)
        ]

    def _likeness(self) -> tuple[object, ...] | None:
        if len(self._rest) > 1:
            return None
        nodes = self._rest[0] if self._rest else []
        return (*self.schema.names, *(node.key for node in nodes)) if isinstance(nodes, list) else None

    def select(self, frame: Frame) -> Selected:
        """Runs the filters at the beginning of the chain."""
        selected = Selected(Survivors(frame), [], [])
        self._run(self._filters, selected)
        return selected

    def finish(self, selected: Selected) -> ChainOutput:
        """Runs the operators after those filters."""
        self._run(self._rest, selected)
        began = perf_counter_ns()
        batch = self._batch(selected.survivors)
        if selected.nanos:
            selected.nanos[-1] += perf_counter_ns() - began
        return ChainOutput(batch, tuple(selected.passed), tuple(selected.nanos), selected.survivors.errors)

    def project(self, frame: Frame) -> list[Value]:
        """The columns of the output, for a chain with at most one projection, which is its end."""
        if not self._rest:
            return [frame.column(number) for number in range(len(self._kinds))]
        nodes = self._rest[0]
        assert isinstance(nodes, list)
        return [node(frame) for node in nodes]

    def output(self, selected: Selected, batch: pa.RecordBatch, nanos: int, errors: int) -> ChainOutput:
        """The output with columns that :meth:`project` made elsewhere, in ``nanos`` nanoseconds."""
        passed, spent = selected.passed, selected.nanos
        if self._rest:
            passed, spent = [*passed, batch.num_rows], [*spent, nanos]
        elif spent:
            spent[-1] += nanos
        return ChainOutput(batch, tuple(passed), tuple(spent), selected.survivors.errors + errors)

    def failed(self, failure: str) -> ChainOutput:
        """The output of a run that raised."""
        nothing = (0,) * len(self._steps)
        return ChainOutput(self._empty[0], nothing, nothing, 0, failure)

    def _run(self, steps: Sequence[Node | list[Node]], selected: Selected) -> None:
        survivors, passed, nanos = selected
        start = perf_counter_ns()
        for step in steps:
            if survivors.count:
                if isinstance(step, Node):
                    survivors.keep(step)
                else:
                    survivors.project(step)
            passed.append(survivors.count)
            now = perf_counter_ns()
            nanos.append(now - start)
            start = now

    def _batch(self, survivors: Survivors) -> pa.RecordBatch:
        if not survivors.count:
            return self._empty[0]
        frame = survivors.gather()
        arrays = [encode(frame.column(number), kind) for number, kind in enumerate(self._kinds)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
