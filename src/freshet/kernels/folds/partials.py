"""Partial aggregates: what is remembered of some tuples, so that more can be added without looking at them again.

A partial has three forms. In the state it is a few Arrow columns. In memory (:class:`Loaded`) it is NumPy arrays with
one entry for each row; a single tuple is *lifted* to that form too. *Reducing* adds up rows with the same number,
whichever they stand for: tuples, partials of panes, or blocks of panes.
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
    """Partials in memory: arrays of equal length, and the sorted words that they number, if they do."""

    arrays: tuple[Array, ...]
    words: pa.Array | None = None

    def take(self, index: Ints | slice) -> Loaded:
        """Some of the rows."""
        return Loaded(tuple(array[index] for array in self.arrays), self.words)


def concatenate(parts: Sequence[Loaded]) -> Loaded:
    """Rows that share their words, one after the other."""
    if len(parts) == 1:
        return parts[0]
    arrays = zip(*(part.arrays for part in parts), strict=True)
    return Loaded(tuple(np.concatenate(each) for each in arrays), parts[0].words)


@dataclass(frozen=True)
class Partial(ABC):
    """A kind of partial over a column; equal ones are kept once, however many calls need them.

    Args:
        column: Its argument; None: the tuples themselves.
        kind: Type of the argument.
    """

    column: str | None
    kind: pa.DataType
    is_integral: ClassVar[bool] = False
    """Whether its arrays are integers that are added: then a range is a difference of two running sums."""

    @property
    @abstractmethod
    def fields(self) -> list[pa.Field]:
        """Columns of the state."""

    @abstractmethod
    def lift(self, values: pa.Array) -> Loaded:
        """The tuples with these arguments, each by itself."""

    @abstractmethod
    def reduce(self, loaded: Loaded, ids: Ints, groups: int) -> Loaded:
        """Rows with equal numbers together; a group without rows is as if all its arguments were NULL."""

    def load(self, columns: Sequence[pa.Array]) -> Loaded:
        """From the columns of the state."""
        return Loaded(tuple(decode(column).values for column in columns))

    def store(self, loaded: Loaded) -> list[pa.Array]:
        """To the columns of the state."""
        return [arrow(a, field.type) for a, field in zip(loaded.arrays, self.fields, strict=True)]

    def name(self, part: str) -> str:
        """A column of the state."""
        return f"{type(self).__name__.lower()}({self.column or '*'}).{part}"


@dataclass(frozen=True)
class Count(Partial):
    """How many arguments are not NULL, or how many tuples there are."""

    is_integral: ClassVar[bool] = True

    @property
    def fields(self) -> list[pa.Field]:
        return [pa.field(self.name("count"), pa.int64())]

    def lift(self, values: pa.Array) -> Loaded:
        return Loaded((ones(values) if self.column is not None else np.ones(len(values), np.int64),))

    def reduce(self, loaded: Loaded, ids: Ints, groups: int) -> Loaded:
        return Loaded((add_up(loaded.arrays[0], ids, groups),))


def valid_of(values: pa.Array) -> Mask | None:
    """Where an argument is not NULL; None: everywhere."""
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
