"""Folds compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from freshet.kernels.folds.folded import CompiledFold
from freshet.kernels.folds.join import CompiledJoin
from freshet.kernels.folds.moving import CompiledMoving
from freshet.kernels.folds.panes import CompiledPanes
from freshet.kernels.folds.running import CompiledRunning
from freshet.model import Fold, Join, Moving, Panes


def compile_fold(operator: Fold, *inputs: pa.Schema) -> CompiledFold:
    """A fold that runs over Arrow tables.

    Cut the input into trains as you like and run them in their order: the rows that were given out are the same (to
    rounding of floating-point sums), given that

    - ``states`` of a run are what the runs before it left: rows dropped from the low end, then rows appended;
    - ``before`` is the ``after`` of the previous run, and ``after`` holds for what is still to come *after this run*:
      where a unit has tuples for several ports of a fold, the watermark of a port moves only with or after the run of
      that port. It is enough that all runs but the last have an ``after`` equal to ``before``;
    - watermarks are true: no later tuple of a port has a time before the port's watermark.

    A tuple without a time, or whose validity ends when it begins, is valid at no time: no fold gives out anything for
    it, except that a window of ROWS does not look at times. :data:`~freshet.model.operators.panes.WINDOW_START` is NULL
    where a column says how long tuples are valid.

    Answers are exact for counts, integers, decimals, minima and maxima: a sum overflows if its result does, in
    whatever order its parts came. Quantiles are within half a percent of the value whose rank is the one asked for.

    Args:
        operator: The fold.
        inputs: Columns of each of its inputs.

    Raises:
        UserError: A column has a type that the fold cannot use.

    >>> from freshet.model import Call, Panes, Lifetime
    >>> schema = pa.schema({"ts": pa.int64(), "k": pa.string()})
    >>> fold = compile_fold(Panes("q.panes", Lifetime("ts", 10), 10, ("k",), (Call("n", "count"),)), schema)
    >>> table = pa.table({"ts": [1, 5, 12], "k": ["a", "a", "a"], "__arrival": [1, 2, 3]})
    >>> folded = fold.run(table, [each.empty_table() for each in fold.states], [None], [12])
    >>> folded.output.select(["k", "n"]).to_pylist(), folded.appended[0].num_rows
    ([{'k': 'a', 'n': 2}], 1)
    """
    return KERNELS[type(operator)](operator, *inputs)


def _moving(operator: Moving, schema: pa.Schema) -> CompiledFold:
    unbounded = operator.size is None and operator.rows is None
    return CompiledRunning(operator, schema) if unbounded else CompiledMoving(operator, schema)


KERNELS: Final[dict[type[Fold], Callable[..., CompiledFold]]] = {
    Panes: CompiledPanes,
    Moving: _moving,
    Join: CompiledJoin,
}
"""How each kind of fold is compiled from its operator and the columns of its inputs; a new kind is entered here."""
