"""Finds the rows that join: those with equal keys that are valid at the same time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from freshet.kernels.expressions.value import Mask, both
from freshet.kernels.folds.arrays import Ints, flat, take
from freshet.kernels.folds.sorting import stable_order
from freshet.kernels.folds.states.hashing import ALL_HASHES, Hashes, same
from freshet.kernels.folds.states.key_index import ValidTimes
from freshet.kernels.folds.states.slab import Keys, Slab
from freshet.kernels.folds.states.state_rows import StateRows
from freshet.kernels.folds.windows import Windows


def pairs(probe: Slab, rows: StateRows, keys: Keys) -> Iterator[tuple[Ints, Ints]]:
    """Numbers of the rows of a slab, and the places of the remembered rows that they join with, a batch at a time.

    Args:
        probe: Some rows.
        rows: The remembered rows, usually far more.
        keys: Key columns, of equal types in both; NULL equals nothing.
    """
    if not len(probe):
        return
    hashes, times = probe.hashes(keys), probe.times
    assert times is not None
    # Searching in sorted order is much faster than jumping about.
    near = stable_order(hashes, ALL_HASHES)
    hashes, times = hashes[near], ValidTimes(times.start[near], times.end[near])
    first, last = int(times.start.min()), int(times.end.max())
    for number, (slab, begin) in enumerate(zip(rows.slabs, rows.begins, strict=False)):
        if slab.span[1] > first and slab.first_start < last:
            skipped = 0 if number else rows.skipped
            for own, other in _pairs_of(slab, skipped, (probe, near, times), hashes, keys):
                yield own, other + begin


def partnered(probe: Slab, rows: StateRows, keys: Keys) -> Mask:
    """The rows of a slab that join with any remembered row."""
    has: Mask = np.zeros(len(probe), np.bool_)
    for own, _ in pairs(probe, rows, keys):
        has[own] = True
    return has


def _pairs_of(
    slab: Slab, skipped: int, probe: tuple[Slab, Ints, ValidTimes], hashes: Hashes, keys: Keys
) -> Iterator[tuple[Ints, Ints]]:
    some, near, times = probe
    index, known = slab.index(keys), slab.times
    assert known is not None
    lo, hi = index.find(hashes, times)
    for begin, _, places, ids in Windows(lo, hi, hi).pairs():
        if not len(places):
            continue
        other, ids = index.rows[places].astype(np.int64), ids + begin
        meet = _meet(other, ids, None if index.is_exact else (known, times), skipped)
        if meet is not None and not meet.all():
            other, ids = other[meet], ids[meet]
        own = near[ids]
        for key in keys:
            equal = same(take(flat(some.table, key), own), take(flat(slab.table, key), other))
            if not equal.all():
                own, other = own[equal], other[equal]
        if len(own):
            yield own, other


def _meet(other: Ints, ids: Ints, times: tuple[ValidTimes, ValidTimes] | None, skipped: int) -> Mask | None:
    """Which candidates are still part of the state, and valid at the same time; None: all.

    Args:
        other: Numbers of the remembered rows.
        ids: Numbers of the probing rows.
        times: When both are valid; None: that was looked at before.
        skipped: Number of the first remembered row that is still part of the state.
    """
    meet: Mask | None = None
    if times is not None:
        known, own = times
        meet = (known.start[other] < own.end[ids]) & (known.end[other] > own.start[ids])
    if skipped:
        meet = both(meet, other >= skipped)
    return meet
