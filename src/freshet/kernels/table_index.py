"""An index over the rows of a table: built once for each version, used for every train."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshet.kernels.expressions.arrow import decode
from freshet.kernels.folds.arrays import Ints
from freshet.kernels.folds.groups import canonical

if TYPE_CHECKING:
    import pandas as pd

_NOWHERE: Final = -1


class TableIndex:
    """Finds rows by their keys. Keys are equal if Spark says so; NULL equals nothing.

    Args:
        columns: The key columns of the rows; without any, every row is found.
        rows: Number of rows.

    >>> index = TableIndex([pa.array(["b", "a", None, "b"])], 4)
    >>> low, high = index.find([pa.array(["a", "b", "c", None])], 4)
    >>> [index.order[one:two].tolist() for one, two in zip(low, high)]
    [[1], [0, 3], [], []]
    """

    def __init__(self, columns: Sequence[pa.Array], rows: int) -> None:
        # Imported only here: pandas takes longer to import than all of `freshet check` should.
        import pandas as pd

        self._levels: list[tuple[pd.Index, pd.Index]] = []
        codes: Ints = np.zeros(rows, np.int64)
        for column in columns:
            values = _Values(column)
            level = pd.Index(values.distinct)
            pairs = _paired(codes, values.codes(level), len(level))
            both = pd.Index(np.unique(pairs[pairs >= 0]))
            self._levels.append((level, both))
            codes = both.get_indexer(pairs).astype(np.int64)
        known = np.flatnonzero(codes >= 0)
        self.order: Final[Ints] = known[np.argsort(codes[known], kind="stable")]
        """Numbers of the rows that can be found; rows with equal keys are together, in their order."""
        groups = int(codes.max()) + 1 if rows else 0
        # The last two ends belong to a missing key: its range is empty.
        counts = np.append(np.bincount(codes[known], minlength=groups), 0)
        self._ends: Final[Ints] = np.concatenate([[0], np.cumsum(counts)])

    def find(self, columns: Sequence[pa.Array], rows: int) -> tuple[Ints, Ints]:
        """For each tuple, given by its keys, the range of :attr:`order` with the rows that it meets."""
        codes: Ints = np.zeros(rows, np.int64)
        for column, (level, both) in zip(columns, self._levels, strict=True):
            codes = both.get_indexer(_paired(codes, _Values(column).codes(level), len(level))).astype(np.int64)
        missing = len(self._ends) - 2
        codes = np.where((codes >= 0) & (codes < missing), codes, missing)
        return self._ends[codes], self._ends[codes + 1]


class Indexes:
    """Keeps indexes, so that queries with the same keys in the same version share one.

    >>> indexes = Indexes(most=1)
    >>> one = indexes.get("v1", [pa.array([1, 2])], 2)
    >>> indexes.get("v1", [pa.array([1, 2])], 2) is one, indexes.get("v2", [], 0) is one
    (True, False)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, TableIndex] = OrderedDict()

    def get(self, key: Hashable, columns: Sequence[pa.Array], rows: int) -> TableIndex:
        """The index of rows by their key columns; ``key`` identifies it."""
        if key not in self._kept:
            self._kept[key] = TableIndex(columns, rows)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


class _Values:
    """A column as distinct values, and the number of the value of each row."""

    def __init__(self, column: pa.Array) -> None:
        kind = column.type
        self._places: Ints | None = None
        if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_temporal(kind):
            value = decode(canonical(column))
            numbers = value.values
            self.values: npt.NDArray[Any] = (
                numbers.view(f"i{numbers.itemsize}") if numbers.dtype.kind == "f" else numbers
            )
            self._valid = value.valid
            return
        # Python objects are expensive: one for each distinct value is enough.
        encoded = column.dictionary_encode()
        self.values = encoded.dictionary.to_numpy(zero_copy_only=False)
        self._places = encoded.indices.fill_null(_NOWHERE).to_numpy().astype(np.int64)
        self._valid = None

    @property
    def distinct(self) -> npt.NDArray[Any]:
        """The values without NULL, each once."""
        if self._places is not None:
            return self.values
        found: npt.NDArray[Any] = np.unique(self.values if self._valid is None else self.values[self._valid])
        return found

    def codes(self, level: pd.Index) -> Ints:
        """Places of the rows' values among those of a level; -1 if a value is not there."""
        found: Ints = level.get_indexer(self.values).astype(np.int64)
        if self._places is not None:
            return np.where(self._places >= 0, np.append(found, _NOWHERE)[self._places], _NOWHERE)
        return found if self._valid is None else np.where(self._valid, found, _NOWHERE)


def _paired(codes: Ints, more: Ints, size: int) -> Ints:
    """One number for each pair of numbers; -1 where either is -1."""
    return np.where((codes >= 0) & (more >= 0), codes * size + more, _NOWHERE)
