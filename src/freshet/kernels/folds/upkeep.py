"""Upkeep of a state stream: rows that are no longer needed are dropped from its low end, or it is rewritten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.arrays import select

SMALL: Final = 128
"""States of at most this number of rows are not worth merging."""

Compact = Callable[[pa.Table, bool], pa.Table | None]
"""The rows with equal ones merged; unless forced, None if more than half of them would stay."""


def keep_up(
    state: pa.Table, live: Mask | None, fresh: pa.Table, compact: Compact | None = None
) -> tuple[pa.Table, int]:
    """The rows to append to a state stream, and the number of rows to drop from its low end.

    The stream is rewritten if most of the rows that would stay are dead. Rows are merged when their number passes a
    power of two, up or down. So the state is at most eight times as large as it needs to be: up to half of its rows
    are dead, and up to three of four live rows can still be merged. The cost of merging is constant per row.

    Args:
        state: The rows of the stream.
        live: The rows of it that are still needed; None: all.
        fresh: New rows.
        compact: Merges rows that can be merged.

    >>> import numpy as np
    >>> some = pa.table({"a": [1, 2]})
    >>> keep_up(some, np.array([False, True]), some)[1]
    1
    """
    if live is None or live.all():
        dropped, dead = 0, 0
    else:
        dropped = int(live.argmax()) if live.any() else len(live)
        dead = int((~live[dropped:]).sum())
    stays = state.num_rows - dropped
    rewrite = 2 * dead > stays
    rows = stays + fresh.num_rows
    if compact is not None and stays and rows > SMALL and (rewrite or rows.bit_length() != state.num_rows.bit_length()):
        merged = compact(pa.concat_tables([select(state, live), fresh]), rewrite)
        if merged is not None:
            return merged, state.num_rows
    if rewrite:
        return pa.concat_tables([select(state, live), fresh]), state.num_rows
    return fresh, dropped


def keep_live(state: pa.Table, fresh: pa.Table, live: Mask | None) -> tuple[pa.Table, int]:
    """The same, where ``live`` covers the old rows and then the new ones, of which only live ones are appended."""
    if live is None:
        return keep_up(state, None, fresh)
    return keep_up(state, live[: state.num_rows], select(fresh, live[state.num_rows :]))
