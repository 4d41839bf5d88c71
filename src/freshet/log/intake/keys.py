"""The ordered key of a stream: judges rows by it as they come, one after the other."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freshet.log.intake.key_numbers import key_numbers, varying_bytes
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
