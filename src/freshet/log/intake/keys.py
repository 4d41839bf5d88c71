"""The ordered key of a stream: judges rows by it as they come, one after the other."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freshet.log.log import Log
from freshet.log.store.records import KeyMoves, KeyNews
from freshet.model import KeyOrder
from freshet.quality.disorder import Disorder

_GREATEST: Final = np.iinfo(np.int64).max


class JudgedKeys(NamedTuple):
    """What some rows say about the order of their stream, for the log; and what is known after them."""

    news: KeyNews
    disorder: Disorder


class OrderKeeper:
    """The key marks of one stream. What it knows is committed with the rows that it has learned it from, so a restart
    changes nothing.

    Args:
        log: The log.
        stream: The stream.
        order: What the stream declares about its order.
    """

    def __init__(self, log: Log, stream: str, order: KeyOrder) -> None:
        self._log, self._stream, self._order = log, stream, order
        self.column: Final = order.column
        """The ordered key."""
        packed = log.disorder(stream)
        self._disorder = Disorder() if packed is None else Disorder.unpacked(packed)

    def refused(self, column: pa.Array | pa.ChunkedArray) -> dict[int, str]:
        """Rows that have no place in the order, each with the reason."""
        reasons: dict[int, str] = {}
        if column.null_count:
            missing = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist()
            reasons = dict.fromkeys(missing, f"column {self.column}: the ordered key is NULL")
        if pa.types.is_int64(column.type) and len(column) and pc.max(column).as_py() == _GREATEST:
            last = np.flatnonzero(pc.equal(column, _GREATEST).fill_null(False).to_numpy(zero_copy_only=False)).tolist()
            reasons |= dict.fromkeys(last, f"column {self.column}: the greatest bigint cannot be an ordered key")
        return reasons

    def judge(self, table: pa.Table) -> JudgedKeys:
        """Judges rows that are about to come into the log."""
        keys, sizes, before = key_numbers(table.column(self.column)), varying_bytes(table), self._disorder
        past, disorder, marks = before.judge(keys, self._order, sizes)
        return self._judged(disorder, tuple(past.tolist()), KeyMoves(keys, sizes, marks, before, disorder))

    def took(self, judged: JudgedKeys) -> None:
        """The rows are in the log."""
        self._disorder = judged.disorder

    def beat(self, key: int) -> None:
        """Says that no later row has a key below this one."""
        judged = self._judged(self._disorder.raised(key - 1), ())
        self._log.raise_key_mark(self._stream, judged.news)
        self.took(judged)

    def end(self) -> None:
        """Says that no more rows come."""
        self.beat(int(_GREATEST))

    def _judged(self, disorder: Disorder, past: tuple[int, ...], moves: KeyMoves | None = None) -> JudgedKeys:
        return JudgedKeys(KeyNews(disorder.mark, past, disorder.packed(), moves), disorder)


def key_numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Ordered keys as numbers: times as microseconds.

    >>> key_numbers(pa.chunked_array([pa.array([7, 8], pa.int16())])).tolist()
    [7, 8]
    """
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", tz=column.type.tz))
    numbers: npt.NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return numbers


def varying_bytes(table: pa.Table) -> npt.NDArray[np.int64]:
    """The bytes of the texts, binaries, lists and maps of each row.

    >>> varying_bytes(pa.table({"n": [1, 2, 3], "t": ["a", None, "abc"], "l": [[1, 2], [], None]})).tolist()
    [17, 0, 3]
    """
    total = np.zeros(len(table), np.int64)
    for column in table.columns:
        if len(column) and not is_fixed(column.type):
            total += _bytes_of(column.combine_chunks())
    return total


def is_fixed(kind: pa.DataType) -> bool:
    """Whether all values of a type take the same number of bytes."""
    if pa.types.is_struct(kind):
        return all(is_fixed(field.type) for field in kind)
    kinds = (pa.types.is_primitive, pa.types.is_null, pa.types.is_fixed_size_binary, pa.types.is_decimal)
    return any(each(kind) for each in kinds)


def _bytes_of(array: pa.Array) -> npt.NDArray[np.int64]:
    """The bytes of each value of an array."""
    kind = array.type
    if is_fixed(kind):
        return np.full(len(array), _width(kind), np.int64)
    if pa.types.is_struct(kind):
        return np.add.reduce([_bytes_of(array.field(place)) for place in range(kind.num_fields)])  # type: ignore[no-any-return]
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        ends = np.cumsum(np.concatenate([[0], _bytes_of(array.values)]))
        offsets = array.offsets.to_numpy()
        found: npt.NDArray[np.int64] = np.where(array.is_valid(), ends[offsets[1:]] - ends[offsets[:-1]], 0)
        return found
    lengths: npt.NDArray[np.int64] = pc.binary_length(array).fill_null(0).cast(pa.int64()).to_numpy()
    return lengths


def _width(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return sum(_width(field.type) for field in kind)
    return 0 if pa.types.is_null(kind) else -(-int(kind.bit_width) // 8)
