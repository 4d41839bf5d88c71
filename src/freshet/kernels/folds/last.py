"""The last tuples of each partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.arrays import flat, select
from freshet.kernels.folds.folded import Folded, LiveFold, Watermarks
from freshet.kernels.folds.groups import check_key, encode_groups
from freshet.kernels.folds.held import HeldTables
from freshet.kernels.folds.sorting import stable_order
from freshet.kernels.folds.states.upkeep import keep_live
from freshet.model import ARRIVAL
from freshet.model.operators import Last


class CompiledLast:
    """A :class:`~freshet.model.operators.Last` for tuples of a schema."""

    def __init__(self, operator: Last, schema: pa.Schema) -> None:
        for key in operator.partition:
            check_key(schema, key)
        self.operator: Final = operator
        self.output: Final = pa.schema([field for field in schema if field.name != ARRIVAL])
        self.states: Final = (self.output.append(pa.field(ARRIVAL, pa.int64())),)

    @property
    def state_keys(self) -> tuple[str, ...]:
        return self.operator.partition

    def live(self, states: Sequence[pa.Table]) -> LiveFold:
        return HeldTables(self, tuple(states))

    def run(
        self, table: pa.Table, states: Sequence[pa.Table], before: Watermarks, after: Watermarks, port: int = 0
    ) -> Folded:
        """Takes tuples in, and gives out all that are among the last ones of their partition."""
        [state] = states
        fresh = table.select(self.states[0].names).cast(self.states[0])
        rows = pa.concat_tables([state, fresh])
        live = self._live(rows)
        appended, dropped = keep_live(state, fresh, live)
        return Folded(select(rows, live), (appended,), (dropped,))

    def _live(self, rows: pa.Table) -> Mask:
        partition = [flat(rows, name) for name in self.operator.partition]
        codes, size = encode_groups(partition, rows.num_rows)
        order = stable_order(codes, size)
        ends = np.cumsum(np.bincount(codes, minlength=size))
        behind = np.empty(rows.num_rows, np.int64)
        behind[order] = ends[codes[order]] - 1 - np.arange(rows.num_rows)
        live: Mask = behind < self.operator.rows
        return live
