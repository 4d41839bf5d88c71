"""Sums. Integers and decimals are exact in any order: only the result can overflow, never a part.

A whole number is kept as limbs of 32 bits in integers of 64: two for a bigint, four for a decimal. Each limb is summed
separately (two thousand million rows fit). Carries are added when the sum is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshet.kernels.expressions.arrow import decode
from freshet.kernels.expressions.types import is_decimal
from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.aggregates.partials import Loaded, Partial, add_up, ones
from freshet.kernels.folds.arrays import Floats, Ints, arrow

_LIMB: Final = 0xFFFFFFFF
Finished = tuple[pa.Array, int]
"""A result, and the number of its rows that overflowed."""


@dataclass(frozen=True)
class ExactSum(Partial):
    """Number and sum of integers or decimals."""

    is_integral: ClassVar[bool] = True

    @property
    def fields(self) -> list[pa.Field]:
        names = ["count", *(f"limb_{place}" for place in range(4 if is_decimal(self.kind) else 2))]
        return [pa.field(self.name(part), pa.int64()) for part in names]

    def lift(self, values: pa.Array) -> Loaded:
        count = ones(values)
        limbs = _decimal_limbs(values) if is_decimal(self.kind) else _integer_limbs(values)
        if values.null_count:
            limbs = [limb * count for limb in limbs]
        return Loaded((count, *limbs))

    def reduce(self, loaded: Loaded, ids: Ints, groups: int) -> Loaded:
        return Loaded(tuple(add_up(array, ids, groups) for array in loaded.arrays))

    def store(self, loaded: Loaded) -> list[pa.Array]:
        count, *limbs = loaded.arrays
        return super().store(Loaded((count, *carry(limbs))))


@dataclass(frozen=True)
class DoubleSum(Partial):
    """Number and sum of floating-point numbers."""

    @property
    def fields(self) -> list[pa.Field]:
        return [pa.field(self.name("count"), pa.int64()), pa.field(self.name("sum"), pa.float64())]

    def lift(self, values: pa.Array) -> Loaded:
        return Loaded((ones(values), doubles(values)))

    def reduce(self, loaded: Loaded, ids: Ints, groups: int) -> Loaded:
        count, total = loaded.arrays
        return Loaded((add_up(count, ids, groups), np.bincount(ids, total, groups)))


def doubles(values: pa.Array) -> Floats:
    """Arguments as doubles, 0 for NULL.

    >>> doubles(pa.array([1, None])).tolist()
    [1.0, 0.0]
    """
    if not pa.types.is_floating(values.type):
        values = values.cast(pa.float64(), safe=False)
    value = decode(values)
    numbers: Floats = value.values.astype(np.float64, copy=False)
    return numbers if value.valid is None else np.where(value.valid, numbers, 0.0)


def carry(limbs: Sequence[Ints]) -> list[Ints]:
    """The same numbers with all limbs but the highest in 0 ... 2**32 - 1."""
    carried, over = [], np.zeros_like(limbs[0])
    for limb in limbs[:-1]:
        whole = limb + over
        carried.append(whole & _LIMB)
        over = whole >> 32
    return [*carried, limbs[-1] + over]


def finish_sum(kind: pa.DataType, loaded: Loaded) -> Finished:
    """The sum in the type that Spark gives it."""
    count, *rest = loaded.arrays
    some = count > 0
    if kind == pa.float64():
        return arrow(rest[0], kind, some), 0
    limbs = carry(rest)
    fits = (limbs[-1] >= -(2**31)) & (limbs[-1] < 2**31)
    if kind == pa.int64():
        return arrow((limbs[1] << 32) | limbs[0], kind, some & fits), int((some & ~fits).sum())
    low, high = _halves(limbs)
    fits &= _within(low, high, kind.precision)
    return _decimals(low, high, kind, some & fits), int((some & ~fits).sum())


def finish_average(kind: pa.DataType, scale: int, loaded: Loaded) -> Finished:
    """The average; decimals are rounded half up to four more digits than the argument's ``scale``, at most 38."""
    count, *rest = loaded.arrays
    some = count > 0
    if is_decimal(kind):
        return _decimal_average(kind, scale, count, carry(rest))
    total = rest[0] if len(rest) == 1 else np.ldexp(rest[1].astype(np.float64), 32) + rest[0]
    return arrow(total / np.maximum(count, 1), kind, some), 0


def _decimal_average(kind: pa.DataType, scale: int, count: Ints, limbs: Sequence[Ints]) -> Finished:
    wide = [limb.astype(object) for limb in limbs]
    totals = wide[0] + (wide[1] << 32) + (wide[2] << 64) + (wide[3] << 96)
    twice = 2 * np.abs(totals) * 10 ** (kind.scale - scale)
    each = np.maximum(count, 1).astype(object)
    results = np.sign(totals) * ((twice + each) // (2 * each))
    some, fits = count > 0, (np.abs(results) < 10**kind.precision).astype(np.bool_)
    whole = np.where(fits, results, 0)
    halves = [(whole & (2**64 - 1)).astype(np.uint64).view(np.int64), (whole >> 64).astype(np.int64)]
    return _decimals(halves[0], halves[1], kind, some & fits), int((some & ~fits).sum())


def _integer_limbs(values: pa.Array) -> list[Ints]:
    numbers = decode(values).values.astype(np.int64, copy=False)
    return [numbers & _LIMB, numbers >> 32]


def _decimal_limbs(values: pa.Array) -> list[Ints]:
    if values.type.bit_width != 128:
        values = values.cast(pa.decimal128(values.type.precision, values.type.scale))
    data = values.buffers()[1]
    if data is None:
        return [np.zeros(len(values), np.int64)] * 4
    words = np.frombuffer(data, "<u4").reshape(-1, 4)[values.offset : values.offset + len(values)]
    return [*(words[:, place].astype(np.int64) for place in range(3)), words[:, 3].astype(np.int32).astype(np.int64)]


def _halves(limbs: Sequence[Ints]) -> tuple[Ints, Ints]:
    return (limbs[1] << 32) | limbs[0], (limbs[3] << 32) | limbs[2]


def _within(low: Ints, high: Ints, precision: int) -> Mask:
    """Whether numbers of 128 bits have at most ``precision`` decimal digits."""
    parts = low.view(np.uint64)
    largest, smallest = 10**precision - 1, 1 - 10**precision
    small = (high < largest >> 64) | ((high == largest >> 64) & (parts <= np.uint64(largest & (2**64 - 1))))
    large = (high > smallest >> 64) | ((high == smallest >> 64) & (parts >= np.uint64(smallest & (2**64 - 1))))
    both: Mask = small & large
    return both


def _decimals(low: Ints, high: Ints, kind: pa.DataType, valid: Mask) -> pa.Array:
    data: npt.NDArray[Any] = np.stack([np.where(valid, low, 0), np.where(valid, high, 0)], axis=1)
    nulls = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(valid), [nulls, pa.py_buffer(np.ascontiguousarray(data))])
