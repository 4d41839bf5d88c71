"""What happens to a state stream: rows that nobody needs any more go from its low end, or it is written anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.arrays import select

SMALL: Final = 128
"""Rows that are not worth a second look."""

Compact = Callable[[pa.Table, bool], pa.Table | None]
"""The rows with equal ones merged; where not forced, None unless at least half of them go."""


def keep_up(
    state: pa.Table, live: Mask | None, fresh: pa.Table, compact: Compact | None = None
) -> tuple[pa.Table, int]:
    """The rows to append to a state stream, and how many to drop from its low end.

    The stream is written anew where most rows that would stay are dead. Rows that could be merged are looked for when
    the number of rows passes a power of two, up or down: so the state is never more than eight times what it needs to
    be (up to half of it dead, and up to three of four live rows still to be merged), and the looking costs a constant
    per row.

    Args:
        state: Its live range.
        live: Which rows of it are still needed; None: all.
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
    anew = 2 * dead > stays
    rows = stays + fresh.num_rows
    if compact is not None and stays and rows > SMALL and (anew or rows.bit_length() != state.num_rows.bit_length()):
        merged = compact(pa.concat_tables([select(state, live), fresh]), anew)
        if merged is not None:
            return merged, state.num_rows
    if anew:
        return pa.concat_tables([select(state, live), fresh]), state.num_rows
    return fresh, dropped
