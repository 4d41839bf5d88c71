"""Minima and maxima, for all types in one way: every value is mapped to an integer in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freshet.kernels.expressions.arrow import decode
from freshet.kernels.expressions.types import DTYPES
from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.aggregates.partials import Loaded, Partial
from freshet.kernels.folds.arrays import Ints, arrow

_LIMITS: Final = np.iinfo(np.int64)
_MAGNITUDE: Final = np.int64(_LIMITS.max)


@dataclass(frozen=True)
class Extreme(Partial):
    """The least or the greatest argument: NaN is greater than all numbers, text is ordered by its bytes."""

    which: Literal["min", "max"]
    field: str | None = None
    """The column of the state, if it has a special name."""

    @property
    def fields(self) -> list[pa.Field]:
        return [pa.field(self.field or self.name(self.which), self.kind)]

    def lift(self, values: pa.Array) -> Loaded:
        words = None
        if values.type not in DTYPES:
            values, words = _ranked(values)
        value = decode(values)
        valid = np.ones(len(values), np.bool_) if value.valid is None else value.valid
        return Loaded((np.where(valid, ordered(value.values), self._nothing), valid), words)

    def load(self, columns: Sequence[pa.Array]) -> Loaded:
        return self.lift(columns[0])

    def reduce(self, loaded: Loaded, ids: Ints, groups: int) -> Loaded:
        numbers, valid = loaded.arrays
        best = np.full(groups, self._nothing, np.int64)
        (np.minimum if self.which == "min" else np.maximum).at(best, ids, numbers)
        some = np.zeros(groups, np.bool_)
        some[ids if valid.all() else ids[valid]] = True
        return Loaded((best, some), loaded.words)

    def store(self, loaded: Loaded) -> list[pa.Array]:
        return [self.finish(loaded)]

    def finish(self, loaded: Loaded) -> pa.Array:
        """The values themselves."""
        numbers, valid = loaded.arrays
        if loaded.words is not None:
            return loaded.words.take(arrow(np.where(valid, numbers, 0), pa.int64(), valid))
        return arrow(_original(np.where(valid, numbers, 0), DTYPES[self.kind]), self.kind, valid)

    @property
    def _nothing(self) -> int:
        return int(_LIMITS.max if self.which == "min" else _LIMITS.min)


def ordered(values: npt.NDArray[Any]) -> Ints:
    """Numbers, times and booleans as integers in the same order.

    >>> np.argsort(ordered(np.array([np.nan, -np.inf, 1.0, -2.0, np.inf]))).tolist()
    [1, 3, 2, 4, 0]
    """
    if values.dtype.kind != "f":
        return values.astype(np.int64, copy=False)
    numbers = values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return _flip(numbers.view(np.int64))


def _original(numbers: Ints, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return (_flip(numbers).view(np.float64) if dtype.kind == "f" else numbers).astype(dtype, copy=False)


def _flip(bits: Ints) -> Ints:
    """Reverses the order of negative doubles, whose bits grow with their magnitude; a second call undoes the first."""
    return bits ^ ((bits >> 63) & _MAGNITUDE)


def _ranked(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Ranks among the sorted words, and the words."""
    encoded = values.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    ranks = np.empty(len(order), np.int64)
    ranks[order.to_numpy()] = np.arange(len(order))
    codes = encoded.indices
    valid: Mask | None = None if not codes.null_count else codes.is_valid().to_numpy(zero_copy_only=False)
    places = codes.fill_null(0).to_numpy() if codes.null_count else codes.to_numpy()
    numbers = ranks[places] if len(ranks) else np.zeros(len(values), np.int64)
    return arrow(numbers, pa.int64(), valid), encoded.dictionary.take(order)
