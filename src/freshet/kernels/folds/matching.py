"""Finds the tuples of two tables that join: those with equal keys that are valid at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.value import Mask, both
from freshet.kernels.folds.arrays import Ints, flat, join
from freshet.kernels.folds.groups import encode_groups
from freshet.kernels.folds.pane_stream import numbers
from freshet.kernels.folds.partials import valid_of
from freshet.kernels.folds.sorting import Runs, running_maximum, sort_rows
from freshet.kernels.folds.windows import Windows
from freshet.model.operators import FROM, UNTIL


def pairs(probe: pa.Table, buffer: pa.Table, keys: Sequence[str]) -> Iterator[tuple[Ints, Ints]]:
    """Numbers of the rows of both tables that join, a batch at a time.

    Args:
        probe: Rows with keys and with :data:`FROM` and :data:`UNTIL`.
        buffer: Rows with the same; the larger table.
        keys: Key columns, of equal types in both; NULL equals nothing.
    """
    found = _search(probe, buffer, keys)
    if found is not None:
        rows, order, windows = found
        for begin, _, index, ids in windows.pairs():
            if len(index):
                yield rows[ids + begin], order[index]


def partnered(probe: pa.Table, buffer: pa.Table, keys: Sequence[str]) -> Mask:
    """The rows of a table that join with any row of another one."""
    has: Mask = np.zeros(probe.num_rows, np.bool_)
    for rows, _ in pairs(probe, buffer, keys):
        has[rows] = True
    return has


def _search(probe: pa.Table, buffer: pa.Table, keys: Sequence[str]) -> tuple[Ints, Ints, Windows] | None:
    """Rows of the probe in a good order, sorted rows of the buffer, and for each of the former its window."""
    rows, start, end = _chosen(probe, keys)
    if not len(rows):
        return None
    others, other_start, other_end = _chosen(buffer, keys, (int(start.min()), int(end.max())))
    if not len(others):
        return None
    columns = [join([_some(probe, key, rows), _some(buffer, key, others)]) for key in keys]
    codes, size = encode_groups(columns, len(rows) + len(others))
    code, other = codes[: len(rows)], codes[len(rows) :]
    present: Mask = np.zeros(size, np.bool_)
    present[code] = True
    meet = np.flatnonzero(present[other])
    other, other_start, other_end, others = other[meet], other_start[meet], other_end[meet], others[meet]
    order = sort_rows(other, size, other_start)
    other, other_start, other_end = other[order], other_start[order], other_end[order]
    # Searching in sorted order is much faster than jumping about.
    near = sort_rows(code, size, start)
    code, start, end = code[near], start[near], end[near]
    latest = running_maximum(other, size, other_end)
    lo = Runs(other, size, latest).first(code, start + 1)
    hi = np.maximum(Runs(other, size, other_start).first(code, end), lo)
    if np.array_equal(latest, other_end):
        windows = Windows(lo, hi, hi)
    else:
        windows = Windows(lo, lo, hi, lambda index, ids: other_end[index] > start[ids])
    return rows[near], others[order], windows


def _chosen(table: pa.Table, keys: Sequence[str], within: tuple[int, int] | None = None) -> tuple[Ints, Ints, Ints]:
    """Numbers and validity of the rows that have all keys and are valid within some time."""
    start, end = numbers(table, FROM), numbers(table, UNTIL)
    keep = reduce(both, (valid_of(flat(table, key)) for key in keys), None)
    if within is not None:
        keep = both(keep, (end > within[0]) & (start < within[1]))
    if keep is None or keep.all():
        return np.arange(len(start)), start, end
    rows = np.flatnonzero(keep)
    return rows, start[rows], end[rows]


def _some(table: pa.Table, column: str, rows: Ints) -> pa.Array:
    array = flat(table, column)
    return array if len(rows) == len(array) else array.take(pa.array(rows))
