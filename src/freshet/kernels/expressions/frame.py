"""Frames: the columns that expressions are evaluated over, each decoded or gathered at most once, when first used."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

import pyarrow as pa

from freshet.kernels.expressions.arrow import decode, one_array, take
from freshet.kernels.expressions.value import Index, Value


class Frame:
    """Columns by number, and the values of expressions that are used more than once (by their key)."""

    __slots__ = ("_load", "_root", "_values", "bits", "cache", "index", "rows")

    def __init__(self, rows: int, values: list[Value | None], load: Callable[[int], Value] | None = None) -> None:
        self.rows = rows
        self.cache: dict[str, Value] = {}
        self.bits: dict[tuple[str, int], Any] = {}
        """Results of tests that are done together (see :class:`~freshet.kernels.superbox.lookup.NumberSets`)."""
        self._values = values
        self._load = load
        self._root: Frame | None = None
        self.index: Index | None = None
        """The numbers of its rows in the frame that it was taken from, if it was taken from one."""

    @classmethod
    def of_table(cls, table: pa.Table, encode: AbstractSet[int] = frozenset()) -> Frame:
        """The columns of a table; text columns whose number is in ``encode`` get a dictionary."""

        def load(column: int) -> Value:
            return decode(one_array(table.column(column)), column in encode)

        return cls(table.num_rows, [None] * table.num_columns, load)

    def column(self, number: int) -> Value:
        """The value of a column."""
        value = self._values[number]
        if value is None:
            if self._root is not None and self.index is not None:
                value = take(self._root.column(number), self.index)
            else:
                assert self._load is not None
                value = self._load(number)
            self._values[number] = value
        return value

    def take(self, index: Index) -> Frame:
        """The rows with the given numbers; a column is gathered when it is used."""
        if self._root is not None and self.index is not None:
            return self._root.take(self.index[index])
        frame = Frame(len(index), [None] * len(self._values))
        frame._root, frame.index = self, index
        return frame
