"""Partial aggregates: what is kept of tuples, so that more tuples can be added without reading them again.

In the state, a partial is a few Arrow columns. In memory (:class:`Loaded`) it is NumPy arrays with one entry for each
row; a single tuple is *lifted* to that form. *Reducing* adds up rows with the same number, whether they stand for
tuples, partials of panes, or blocks of panes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshet.kernels.expressions.arrow import decode
from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.arrays import Ints, arrow

Array = npt.NDArray[Any]


class Loaded(NamedTuple):
    """Partials in memory: arrays of equal length, and the sorted words if the arrays hold numbers of words."""

    arrays: tuple[Array, ...]
    words: pa.Array | None = None

    def take(self, index: Ints | slice) -> Loaded:
        """Some of the rows."""
        return Loaded(tuple(array[index] for array in self.arrays), self.words)


def concatenate(parts: Sequence[Loaded]) -> Loaded:
    """Joins rows that have the same words, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    arrays = zip(*(part.arrays for part in parts), strict=True)
    return Loaded(tuple(np.concatenate(each) for each in arrays), parts[0].words)


@dataclass(frozen=True)
class Partial(ABC):
    """A kind of partial over a column; equal partials are kept once, however many calls need them.

    Args:
        column: Its argument; None: the tuples themselves.
        kind: Type of the argument.
    """

    column: str | None
    kind: pa.DataType
    is_integral: ClassVar[bool] = False
    """Whether its arrays are integers that are added: then the sum of a range is a difference of two running sums."""

    @property
    @abstractmethod
    def fields(self) -> list[pa.Field]:
        """Columns of the state."""

    @abstractmethod
    def lift(self, values: pa.Array) -> Loaded:
        """The partials of single tuples with these arguments."""

    @abstractmethod
    def reduce(self, loaded: Loaded, ids: Ints, groups: int) -> Loaded:
        """Merges rows with equal numbers; in a group without rows, all arguments count as NULL."""

    def load(self, columns: Sequence[pa.Array]) -> Loaded:
        """Reads partials from the columns of the state."""
        return Loaded(tuple(decode(column).values for column in columns))

    def store(self, loaded: Loaded) -> list[pa.Array]:
        """The columns of the state for partials."""
        return [arrow(a, field.type) for a, field in zip(loaded.arrays, self.fields, strict=True)]

    def name(self, part: str) -> str:
        """The name of a column of the state."""
        return f"{type(self).__name__.lower()}({self.column or '*'}).{part}"


@dataclass(frozen=True)
class Count(Partial):
    """The number of arguments that are not NULL, or the number of tuples."""

    is_integral: ClassVar[bool] = True

    @property
    def fields(self) -> list[pa.Field]:
        return [pa.field(self.name("count"), pa.int64())]

    def lift(self, values: pa.Array) -> Loaded:
        return Loaded((ones(values) if self.column is not None else np.ones(len(values), np.int64),))

    def reduce(self, loaded: Loaded, ids: Ints, groups: int) -> Loaded:
        return Loaded((add_up(loaded.arrays[0], ids, groups),))


def valid_of(values: pa.Array) -> Mask | None:
    """The rows whose argument is not NULL; None: all rows."""
    return decode(values).valid


def ones(values: pa.Array) -> Ints:
    """1 where an argument is not NULL."""
    valid = valid_of(values)
    return np.ones(len(values), np.int64) if valid is None else valid.astype(np.int64)


def add_up(values: Ints, ids: Ints, groups: int) -> Ints:
    """Exact sums of integers by group."""
    totals = np.zeros(groups, np.int64)
    np.add.at(totals, ids, values)
    return totals
