"""What panes are made of: tuples, or what tuples that are close together amount to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.arrays import Ints, take
from freshet.kernels.folds.groups import encode_groups, examples, used
from freshet.kernels.folds.partials import Loaded, Partial


class PaneRows(NamedTuple):
    """Rows of one state stream before it is known at which boundaries they count.

    Args:
        start: Since when each is valid.
        until: Until when, where a column says it; None: the window does.
        keys: What panes are grouped by.
        partials: What is kept of the rows.
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
        """One row for each group and stretch of time of this width; None where that were more than ``most``."""
        cells = self.start // width
        codes, size = encode_groups([cells, *self.keys], len(cells))
        codes, size = used(codes, size)
        if size > most:
            return None
        one = examples(codes, size)
        rows = [each.reduce(loaded, codes, size) for each, loaded in zip(partials, self.partials, strict=True)]
        return PaneRows(cells[one] * width, None, [take(key, one) for key in self.keys], rows)
