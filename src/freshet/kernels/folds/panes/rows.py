"""The rows that panes are made of: tuples, or merged tuples that are close together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.aggregates.partials import Loaded, Partial
from freshet.kernels.folds.arrays import Ints, take
from freshet.kernels.folds.groups import encode_groups, examples, used


class PaneRows(NamedTuple):
    """Rows of one state stream before the boundaries at which they count are known.

    Args:
        start: When each row becomes valid.
        until: When each row ceases to be valid, if a column says so; None: the window size decides.
        keys: The columns by which panes are grouped.
        partials: The partials of the rows.
    """

    start: Ints
    until: Ints | None
    keys: Sequence[pa.Array]
    partials: Sequence[Loaded]

    def select(self, keep: Mask) -> PaneRows:
        """The rows that are kept."""
        if keep.all():
            return self
        places, mask = np.flatnonzero(keep), pa.array(keep)
        until = None if self.until is None else self.until[keep]
        keys = [key.filter(mask) for key in self.keys]
        return PaneRows(self.start[keep], until, keys, [loaded.take(places) for loaded in self.partials])

    def merged(self, width: int, partials: Sequence[Partial], most: float) -> PaneRows | None:
        """One row for each group and stretch of time of this width; None if there were more than ``most`` rows."""
        cells = self.start // width
        codes, size = encode_groups([cells, *self.keys], len(cells))
        codes, size = used(codes, size)
        if size > most:
            return None
        one = examples(codes, size)
        rows = [each.reduce(loaded, codes, size) for each, loaded in zip(partials, self.partials, strict=True)]
        return PaneRows(cells[one] * width, None, [take(key, one) for key in self.keys], rows)
