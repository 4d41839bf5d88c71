"""Many chains over one table in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.compiler import Compiler
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.superbox.chain import ChainOutput, CompiledChain
from freshet.kernels.superbox.outputs import Outputs
from freshet.model import ARRIVAL, Operator


def why_not(operators: Sequence[Operator], schema: pa.Schema) -> str | None:
    """Why a chain cannot be compiled; None: it can.

    >>> from freshet.model import Filter
    >>> why_not([Filter("f", "v > 1")], pa.schema([("v", pa.float64())])) is None
    True
    >>> why_not([Filter("f", "v RLIKE 'x+'")], pa.schema([("v", pa.string())]))
    'REGEXP_LIKE'
    """
    try:
        Program([operators], schema)
    except Unsupported as reason:
        return str(reason)
    return None


class Program:
    """Chains of filters and projections over one input, compiled to NumPy and Arrow with Spark's semantics.

    Args:
        chains: Their operators.
        schema: The input's columns; ARRIVAL is added if it is missing, and always comes last.

    Raises:
        Unsupported: A chain is outside the compiled subset (ask :func:`why_not` before).

    >>> from freshet.model import Filter, Project
    >>> program = Program([[Filter("f", "v > 1.5"), Project("p", (("w", "v * 2"),))]], pa.schema([("v", pa.float64())]))
    >>> [output] = program.run(pa.table({"v": [1.0, 2.0, None], ARRIVAL: [10, 11, 12]}))
    >>> output.batch.to_pylist(), output.passed, output.errors
    ([{'w': 4.0, '__arrival': 11}], (1, 1), 0)
    """

    def __init__(self, chains: Sequence[Sequence[Operator]], schema: pa.Schema) -> None:
        fields = [field.with_nullable(True) for field in schema if field.name != ARRIVAL]
        self._schema = pa.schema([*fields, pa.field(ARRIVAL, pa.int64())])
        compiler = Compiler([(field.name, field.type) for field in self._schema])
        self._chains = [CompiledChain(operators, self._schema, compiler) for operators in chains]
        self._encode = compiler.settle()
        self._outputs = Outputs(self._chains)
        self.schemas: tuple[pa.Schema, ...] = tuple(chain.schema for chain in self._chains)
        """Columns and types of the outputs, as Spark has them, ARRIVAL last."""

    def run(self, table: pa.Table) -> list[ChainOutput]:
        """The outputs of all chains. A chain that raises does not stop the others."""
        frame = Frame.of_table(self._in_order(table), self._encode)
        with np.errstate(all="ignore"):
            return self._outputs.run(frame)

    def _in_order(self, table: pa.Table) -> pa.Table:
        if table.schema.names == self._schema.names:
            return table
        return table.select(self._schema.names)
