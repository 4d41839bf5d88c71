"""A state stream of panes: merged tuples of a group that count at the same boundaries.

A tuple counts at the boundaries ``first ... last`` (as multiples of the slide). A pane is all tuples of a group with
the same boundaries. Panes are never cut, so the answer at a boundary comes from a set of whole panes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.arrow import decode
from freshet.kernels.folds.aggregates.extremes import Extreme
from freshet.kernels.folds.aggregates.partials import Loaded, Partial
from freshet.kernels.folds.arrays import Ints, arrow, flat, take
from freshet.kernels.folds.groups import encode_groups, examples, used
from freshet.model import ARRIVAL

FIRST: Final = "__first"
"""First boundary at which a pane counts."""
LAST: Final = "__last"
"""Last boundary at which a pane counts."""
NEWEST: Final = Extreme(ARRIVAL, pa.int64(), "max", ARRIVAL)
"""The greatest arrival of the tuples of a pane."""


class PaneStream:
    """A state stream whose rows are panes.

    Args:
        keys: Types of the columns that are equal within a pane.
        partials: The partials of its tuples; the greatest arrival is added.
    """

    def __init__(self, keys: Sequence[pa.DataType], partials: Sequence[Partial]) -> None:
        self.keys: Final = tuple(f"key_{place}" for place in range(len(keys)))
        self.partials: Final = (*partials, NEWEST)
        fields = [pa.field(FIRST, pa.int64()), pa.field(LAST, pa.int64())]
        fields += [pa.field(name, kind) for name, kind in zip(self.keys, keys, strict=True)]
        fields += [field for partial in self.partials for field in partial.fields]
        self.schema: Final = pa.schema(fields)

    def make(self, first: Ints, last: Ints, keys: Sequence[pa.Array], rows: Sequence[Loaded]) -> pa.Table:
        """The panes of some rows, which may themselves be tuples or panes."""
        codes, size = self._codes(first, last, keys)
        return self._merge(first, last, keys, rows, codes, size)

    def compact(self, panes: pa.Table, forced: bool) -> pa.Table | None:
        """The panes with equal ones merged; unless forced, None if more than half of them would stay."""
        first, last, keys = numbers(panes, FIRST), numbers(panes, LAST), self.columns(panes)
        codes, size = self._codes(first, last, keys)
        if not forced and 2 * size > len(first):
            return None
        return self._merge(first, last, keys, self.load(panes), codes, size)

    def columns(self, panes: pa.Table) -> list[pa.Array]:
        """The key columns."""
        return [flat(panes, name) for name in self.keys]

    def load(self, panes: pa.Table) -> list[Loaded]:
        """The partials."""
        return [partial.load([flat(panes, field.name) for field in partial.fields]) for partial in self.partials]

    def _codes(self, first: Ints, last: Ints, keys: Sequence[pa.Array]) -> tuple[Ints, int]:
        # Panes have many ends, but few lengths: usually one or two.
        return used(*encode_groups([first, last - first, *keys], len(first)))

    def _merge(
        self, first: Ints, last: Ints, keys: Sequence[pa.Array], rows: Sequence[Loaded], codes: Ints, size: int
    ) -> pa.Table:
        one = examples(codes, size)
        columns = [arrow(first[one], pa.int64()), arrow(last[one], pa.int64()), *(take(key, one) for key in keys)]
        for partial, loaded in zip(self.partials, rows, strict=True):
            columns += partial.store(partial.reduce(loaded, codes, size))
        return pa.Table.from_arrays(columns, schema=self.schema)


def numbers(table: pa.Table, column: str) -> Ints:
    """A column of integers without NULL."""
    values: Ints = decode(flat(table, column)).values
    return values.astype(np.int64, copy=False)
