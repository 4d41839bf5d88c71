"""The folds of ``freshet bench state``: what they remember, and the rows of their steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from freshet.kernels.folds import compile_fold
from freshet.kernels.folds.join import CompiledJoin
from freshet.kernels.folds.panes.panes import CompiledPanes
from freshet.model import Call, Fold, Join, Lifetime, Panes
from freshet.model.schema import with_arrival

STEP: Final = 1000
"""Rows of a step."""
_PIECE: Final = 250_000
"""Rows of a segment of what is remembered at first."""
_INPUT: Final = pa.schema({"ts": pa.timestamp("us", tz="UTC"), "k": pa.int64(), "v": pa.float64()})
_HOUR: Final = 3_600_000_000


class LoadStep(NamedTuple):
    """The rows of one step: at which port they come in, and the watermarks before and after it."""

    port: int
    rows: pa.Table
    before: tuple[int | None, ...]
    after: tuple[int | None, ...]


class StateLoad(Protocol):
    """A fold that remembers a number of rows, and goes on remembering about as many."""

    @property
    def operator(self) -> Fold:
        """The fold."""

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        """Columns of its inputs."""

    def remembered(self) -> Iterator[tuple[int, pa.Table]]:
        """What it remembers at first: pieces, each with the number of its state stream."""

    def step(self, number: int) -> LoadStep:
        """The rows of a step."""


@dataclass(frozen=True)
class JoinLoad:
    """A join of two streams in which a row meets one other on average, however many are remembered.

    A row comes each microsecond, to the streams in turn, a step at a time, and stays until all remembered rows have
    been replaced. Keys are drawn from as many as a stream remembers.

    >>> load = JoinLoad(4000)
    >>> [rows.num_rows for _, rows in load.remembered()], load.step(1).port, load.step(1).rows.num_rows
    ([2000, 2000], 1, 1000)
    """

    rows: int

    @property
    def operator(self) -> Fold:
        columns = (("k", 0, "k"), ("v", 0, "v"), ("w", 1, "v"))
        return Join("q.join_1", "inner", (Lifetime("ts", self.rows),) * 2, (("k",), ("k",)), columns)

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return _INPUT, _INPUT

    def remembered(self) -> Iterator[tuple[int, pa.Table]]:
        fold = compile_fold(self.operator, *self.inputs)
        assert isinstance(fold, CompiledJoin)
        for port in (0, 1):
            for first in range(0, self.rows // 2, _PIECE):
                count = min(_PIECE, self.rows // 2 - first)
                yield port, fold.fresh(self._rows(2 * first, 2, count), port)

    def step(self, number: int) -> LoadStep:
        now = self.rows + number * STEP
        return LoadStep(number % 2, self._rows(now, 1, STEP), (now,) * 2, (now + STEP,) * 2)

    def _rows(self, first: int, apart: int, count: int) -> pa.Table:
        return _table(first + apart * np.arange(count), self.rows // 2, first)


@dataclass(frozen=True)
class PanesLoad:
    """Aggregates by group at the end of each hour, within one hour.

    >>> load = PanesLoad(3000)
    >>> [rows.num_rows for _, rows in load.remembered()], load.step(0).rows.num_rows
    ([3000], 1000)
    """

    groups: int

    @property
    def operator(self) -> Fold:
        calls = (Call("n", "count"), Call("mean", "avg", "v"), Call("most", "max", "v"))
        return Panes("q.aggregate", Lifetime("ts", _HOUR), _HOUR, ("k",), calls)

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (_INPUT,)

    def remembered(self) -> Iterator[tuple[int, pa.Table]]:
        fold = compile_fold(self.operator, *self.inputs)
        assert isinstance(fold, CompiledPanes)
        for first in range(0, self.groups, _PIECE):
            groups = np.arange(first, min(first + _PIECE, self.groups))
            rows = _table(np.zeros(len(groups), np.int64), self.groups, first, groups)
            nothing = fold.live([schema.empty_table() for schema in fold.states])
            yield 0, nothing.run(rows, (None,), (None,))[0].appended[0]

    def step(self, number: int) -> LoadStep:
        return LoadStep(0, _table(np.full(STEP, number + 1), self.groups, number), (number,), (number + 1,))


def _table(times: np.ndarray, keys: int, seed: int, key: np.ndarray | None = None) -> pa.Table:
    draw = np.random.default_rng(seed)
    drawn = draw.integers(0, keys, len(times)) if key is None else key
    stamps = pa.array(times).cast(_INPUT.field("ts").type)
    columns = [stamps, pa.array(drawn), pa.array(draw.random(len(times))), pa.array(times)]
    return pa.Table.from_arrays(columns, schema=with_arrival(_INPUT))
