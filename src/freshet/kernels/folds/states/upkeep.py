"""Upkeep of a state stream: rows that are no longer needed are dropped from its low end, or it is rewritten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

import pyarrow as pa

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.arrays import select
from freshet.kernels.folds.states.slab import Slab
from freshet.kernels.folds.states.state_rows import StateRows

SMALL: Final = 128
"""States of at most this number of rows are not worth merging."""

Compact = Callable[[pa.Table, bool], pa.Table | None]
"""The rows with equal ones merged; unless forced, None if more than half of them would stay."""


class Upkept(NamedTuple):
    """A state stream after a run.

    Args:
        appended: The rows to append to the stream.
        dropped: Number of rows to drop from its low end.
        rows: All rows that it then has.
    """

    appended: pa.Table
    dropped: int
    rows: StateRows


def keep_open(rows: StateRows, fresh: Slab, limit: int | None, compact: Compact | None = None) -> Upkept:
    """Remembers new rows, and forgets those that are not needed after a time.

    The stream is rewritten if most of the rows that would stay are dead. Rows are merged when their number passes a
    power of two, up or down. So the state is at most eight times as large as it needs to be: up to half of its rows
    are dead, and up to three of four live rows can still be merged. The cost of merging is constant per row: if it was
    tried in vain, it is not tried again before the number has changed by a quarter.

    Args:
        rows: The rows of the stream.
        fresh: New rows.
        limit: Rows that end at this time or earlier are not needed; None: all are needed.
        compact: Merges rows that can be merged.

    >>> rows = StateRows.of(pa.table({"end": [1, 2]}), "end")
    >>> keep_open(rows, Slab(pa.table({"end": [3]}), "end"), 1).dropped
    1
    """
    fresh = fresh.open(limit)
    dropped, dead = 0, 0
    if limit is not None:
        dropped = rows.ended_first(limit)
        dead = rows.ended(limit) - dropped
    stays = len(rows) - dropped
    rewrite, size = 2 * dead > stays, stays + len(fresh)
    passes = size.bit_length() != len(rows).bit_length() and 4 * abs(size - rows.tried) >= rows.tried
    if compact is not None and stays and size > SMALL and (rewrite or passes):
        merged = compact(pa.concat_tables([rows.open(limit), fresh.table]), rewrite)
        if merged is not None:
            return Upkept(merged, len(rows), rows.replaced(merged))
        rows = replace(rows, tried=size)
    if rewrite:
        whole = pa.concat_tables([rows.open(limit), fresh.table])
        return Upkept(whole, len(rows), rows.replaced(whole))
    return Upkept(fresh.table, dropped, rows.drop(dropped).append(fresh))


def keep_live(state: pa.Table, fresh: pa.Table, live: Mask) -> tuple[pa.Table, int]:
    """The rows to append to a state stream, and the number of rows to drop from its low end.

    Args:
        state: The rows of the stream.
        fresh: New rows.
        live: Which of the old rows, and then of the new ones, are still needed.

    >>> import numpy as np
    >>> some = pa.table({"a": [1, 2]})
    >>> keep_live(some, some, np.array([False, True, True, True]))[1]
    1
    """
    old, fresh = live[: state.num_rows], select(fresh, live[state.num_rows :])
    dropped = int(old.argmax()) if old.any() else len(old)
    dead = int((~old[dropped:]).sum())
    if 2 * dead > state.num_rows - dropped:
        return pa.concat_tables([select(state, old), fresh]), state.num_rows
    return fresh, dropped
