"""Aggregates for each tuple over all tuples up to it: the state is one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.folds.aggregates.calls import Calls
from freshet.kernels.folds.arrays import flat, join
from freshet.kernels.folds.folded import Folded, Watermarks
from freshet.kernels.folds.held import HeldTables
from freshet.kernels.folds.panes.stream import NEWEST
from freshet.kernels.folds.windows import Windows
from freshet.model import ARRIVAL, Moving, UserError


class CompiledRunning:
    """A :class:`~freshet.model.Moving` without a size, for tuples of a schema."""

    def __init__(self, operator: Moving, schema: pa.Schema) -> None:
        if operator.keys or operator.partition:
            raise UserError("an unbounded window has no groups: give it a RANGE or ROWS, so that they are forgotten")
        self.operator: Final = operator
        self._calls: Final = Calls(operator.calls, schema)
        if self._calls.details:
            raise UserError("distinct values and percentiles need a window with RANGE or ROWS")
        self._partials: Final = (*self._calls.partials, NEWEST)
        carried = [pa.field(name, schema.field(name).type) for name in operator.carried]
        self.output: Final = pa.schema([*carried, *self._calls.fields])
        self.states: Final = (pa.schema([field for partial in self._partials for field in partial.fields]),)
        self._whole: Final = self.output.append(pa.field(ARRIVAL, pa.int64()))

    @property
    def state_keys(self) -> tuple[str, ...]:
        return ()

    def live(self, states: Sequence[pa.Table]) -> HeldTables:
        return HeldTables(self, tuple(states))

    def run(
        self, table: pa.Table, states: Sequence[pa.Table], before: Watermarks, after: Watermarks, port: int = 0
    ) -> Folded:
        [state] = states
        if not table.num_rows:
            return Folded(self._whole.empty_table(), (state.slice(0, 0),), (0,))
        rows = []
        for partial in self._partials:
            new = partial.store(partial.lift(flat(table, partial.column or ARRIVAL)))
            old = [flat(state, field.name) for field in partial.fields]
            rows.append(partial.load([join(pair) for pair in zip(old, new, strict=True)]))
        end = state.num_rows + 1 + np.arange(table.num_rows)
        found = Windows(np.zeros(len(end), np.int64), end, end).reduce(self._partials, rows)
        results, errors = self._calls.finish(found[:-1], {})
        columns = [*(flat(table, name) for name in self.operator.carried), *results, flat(table, ARRIVAL)]
        last = [p.store(loaded.take(slice(-1, None))) for p, loaded in zip(self._partials, found, strict=True)]
        kept = pa.Table.from_arrays([column for each in last for column in each], schema=self.states[0])
        output = pa.Table.from_arrays(columns, schema=self._whole)
        return Folded(output, (kept,), (state.num_rows,), errors)
