"""Operators compiled, each by the file of its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from freshet.kernels.folds.folded import CompiledFold, CompiledRows
from freshet.kernels.folds.join import CompiledJoin
from freshet.kernels.folds.last import CompiledLast
from freshet.kernels.folds.moving import CompiledMoving
from freshet.kernels.folds.own import CompiledOwnFold
from freshet.kernels.folds.panes.panes import CompiledPanes
from freshet.kernels.folds.running import CompiledRunning
from freshet.kernels.own_operator import CompiledOwn
from freshet.kernels.table_join import CompiledLookup
from freshet.model import Join, Lookup, Moving, Operator, Panes
from freshet.model.operators import Last, Own, OwnFold


def compile_fold(operator: Operator, *inputs: pa.Schema) -> CompiledFold:
    """A fold that runs over Arrow tables.

    Cut the input into trains as you like and run them in their order. The fold gives out the same rows (up to rounding
    of floating-point sums), provided that

    - each run is that of the live fold that the run before it gave, or of one made of the same rows of the states;
    - ``before`` is the ``after`` of the previous run, and ``after`` holds for the tuples that come *after this run*. If
      a unit has tuples for several ports of a fold, the watermark of a port moves only with or after the run of that
      port. It is enough that all runs but the last have an ``after`` equal to ``before``;
    - watermarks are true: no later tuple of a port has a time before the port's watermark.

    A tuple is never valid if it has no time, or if its validity ends when it begins. No fold gives out anything for
    it, except that a window of ROWS ignores times. :data:`~freshet.model.operators.panes.WINDOW_START` is NULL if a
    column says how long tuples are valid.

    Answers are exact for counts, integers, decimals, minima and maxima: a sum overflows only if its result does, in
    whatever order its parts came. Quantiles are within half a percent of the value that has the requested rank.

    Args:
        operator: The fold.
        inputs: Columns of each of its inputs.

    Raises:
        UserError: A column has a type that the fold cannot use.

    >>> from freshet.model import Call, Panes, Lifetime
    >>> schema = pa.schema({"ts": pa.int64(), "k": pa.string()})
    >>> fold = compile_fold(Panes("q.panes", Lifetime("ts", 10), 10, ("k",), (Call("n", "count"),)), schema)
    >>> table = pa.table({"ts": [1, 5, 12], "k": ["a", "a", "a"], "__arrival": [1, 2, 3]})
    >>> folded, later = fold.live([each.empty_table() for each in fold.states]).run(table, [None], [12])
    >>> folded.output.select(["k", "n"]).to_pylist(), later.rows
    ([{'k': 'a', 'n': 2}], 1)
    """
    compiled: CompiledFold = KERNELS[type(operator)](operator, *inputs)
    return compiled


def compile_rows(operator: Operator, schema: pa.Schema) -> CompiledRows:
    """An operator that is neither plain nor a fold, over tuples of a schema.

    Raises:
        UserError: A column has a type that the operator cannot use.
    """
    compiled: CompiledRows = KERNELS[type(operator)](operator, schema)
    return compiled


def _moving(operator: Moving, schema: pa.Schema) -> CompiledFold:
    unbounded = operator.size is None and operator.rows is None
    return CompiledRunning(operator, schema) if unbounded else CompiledMoving(operator, schema)


KERNELS: Final[dict[type[Operator], Callable[..., Any]]] = {
    Lookup: CompiledLookup,
    Own: CompiledOwn,
    Panes: CompiledPanes,
    Moving: _moving,
    Last: CompiledLast,
    Join: CompiledJoin,
    OwnFold: CompiledOwnFold,
}
"""Compiles each kind that is not plain from its operator and its inputs' columns; add a new kind here."""
