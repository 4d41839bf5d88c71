"""Keeps some of the tuples of a train: the one place that drops tuples, for both physical forms and for simulations.

A tuple has a number in [0, 1) that depends on its edge and its offset alone, so whatever reads it decides the same: the
other form, another train, another worker, a replay, and whoever looks up the ledger later.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.arrays import Floats
from freshet.kernels.folds.states.hashing import mix_into
from freshet.kernels.superbox.program import Program
from freshet.model import Project, Train
from freshet.model.promises.keep import KEEP_HASH
from freshet.model.scheduling.unit import Worths
from freshet.model.schema import WEIGHT

_RANKS: Final = 129
"""Maximum number of values that tell what tuples are worth."""
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_BLOCK: Final = 1 << 14
"""Number of tuples whose hashes are made at once."""
_STEPS: Final = np.arange(_BLOCK, dtype=np.uint64) * _STEP


@dataclass(frozen=True, slots=True)
class KeptRows:
    """What is kept of a train, and what all its tuples are worth if they are kept by value."""

    table: pa.Table
    worths: Worths | None = None


def kept_rows(table: pa.Table, train: Train) -> KeptRows:
    """The tuples of a train that are kept, from all of its tuples in their order.

    >>> from freshet.model import Keep
    >>> table = pa.table({"v": [5, None, 7, 5], "__arrival": [1, 2, 3, 4]})
    >>> kept_rows(table, Train("s", 10, 14)).table.num_rows
    4
    >>> kept = kept_rows(table, Train("s", 10, 14, keep=Keep(0.5, "q.filter_1", "v", 5.0, ties=0.0)))
    >>> kept.table["v"].to_pylist(), kept.worths
    ([7], Worths(edge='q.filter_1', values=(0.0, 5.0, 5.0, 7.0), rows=4))
    """
    if train.keep is None:
        return KeptRows(table)
    assert table.num_rows == train.rows, f"{table.num_rows} rows of a train of {train.rows}"
    values = None if train.keep.value is None else _values(train.keep.value, table)
    worths = None if values is None else _worths(train.keep.edge, values)
    kept = np.flatnonzero(kept_mask(train, values))
    # By their numbers: a mask takes longer.
    found = table if len(kept) == len(table) else table.take(pa.array(kept))
    return KeptRows(_weighed(found, train.keep.ratio) if train.keep.weighed else found, worths)


def _weighed(table: pa.Table, ratio: float) -> pa.Table:
    """The arrival stays the last column."""
    return table.add_column(table.num_columns - 1, WEIGHT, pa.array(np.full(table.num_rows, 1.0 / ratio)))


def kept_mask(train: Train, values: Floats | None = None) -> Mask:
    """Which tuples of a train are kept.

    Args:
        train: The train.
        values: What its tuples are worth; needed only if it is cut by value.

    >>> from freshet.model import Keep
    >>> half, more = (kept_mask(Train("s", 0, 10_000, keep=Keep(ratio, "q.filter_1"))) for ratio in (0.5, 0.7))
    >>> bool((half <= more).all()), round(float(half.mean()), 1), round(float(more.mean()), 1)
    (True, 0.5, 0.7)
    >>> kept_mask(Train("s", 10, 14, keep=Keep(1.0, "q.marked", past=(9, 11)))).tolist()
    [True, False, True, True]
    """
    keep = train.keep
    if keep is None:
        return np.ones(train.rows, np.bool_)
    kept: Mask = np.ones(train.rows, np.bool_)
    if keep.thins and keep.bound is not None and values is not None:
        ties = _below(keep.edge, train.first, train.end, keep.ties)
        kept = (values > keep.bound) | ((values == keep.bound) & ties)
    elif keep.thins:
        kept = _below(keep.edge, train.first, train.end, keep.ratio)
    # A task has a part of the train, but hears of all offsets.
    for offsets in (keep.past, keep.let_go):
        inside = [offset - train.first for offset in offsets if train.first <= offset < train.end]
        kept[np.array(inside, np.int64)] = False
    return kept


def _below(edge: str, first: int, end: int, ratio: float) -> Mask:
    """Whether the number of each offset of a range, by :data:`~freshet.model.promises.keep.KEEP_HASH`, is below a
    ratio. The number is made of 53 bits, which are what a double holds exactly. A block at a time: it stays in a core's
    cache."""
    bound = math.ceil(ratio * 2.0**53) << 11
    if bound >= 2**64:
        return np.ones(end - first, np.bool_)
    kept, blocks = np.empty(end - first, np.bool_), range(0, end - first, _BLOCK)
    words, other = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint64)
    for at in blocks:
        size = min(_BLOCK, end - first - at)
        begin = ((first + at) * int(_STEP) + int(_salt(edge))) % 2**64
        mixed = mix_into(np.add(_STEPS[:size], np.uint64(begin), out=words[:size]), other[:size])
        np.less(mixed, np.uint64(bound), out=kept[at : at + size])
    return kept


@lru_cache(maxsize=1024)
def _salt(edge: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.sha256(f"{KEEP_HASH} {edge}".encode()).digest()[:8], "little"))


def _values(expression: str, table: pa.Table) -> Floats:
    [output] = _program(expression, table.schema).run(table)
    if output.failure is not None:
        raise RuntimeError(f"value {expression}: {output.failure}")
    found = output.batch.column(0).cast(pa.float64(), safe=False)
    values: Floats = np.array(found.fill_null(0.0), np.float64)
    # Also NaN, which is greater than nothing.
    values[~(values > 0.0)] = 0.0
    return values


@lru_cache(maxsize=256)
def _program(expression: str, schema: pa.Schema) -> Program:
    return Program([(Project("value", (("value", expression),)),)], schema)


def _worths(edge: str, values: Floats) -> Worths | None:
    if not len(values):
        return None
    ordered = np.sort(values)
    if len(ordered) > _RANKS:
        ordered = ordered[np.arange(_RANKS) * (len(ordered) - 1) // (_RANKS - 1)]
    return Worths(edge, tuple(ordered.tolist()), len(values))
