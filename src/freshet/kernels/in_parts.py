"""Runs the chains of an instance in parts, and ends with what was read when no further part fits (RT §4.4).

Rows are kept by nested hash: what is kept at 0.5 is kept at 0.7. So a part is a band of the hash, over the whole of
each window. Whenever it ends, what was read is a random sample of all windows at one ratio, and the ratios of the
inputs of a join keep their proportion. To the operators parts are trains like others: only the last one closes windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.folds import CompiledFold
from freshet.kernels.keeping import kept_mask
from freshet.kernels.running import Made, Runner, Setting
from freshet.kernels.superbox.pipeline import Memory
from freshet.kernels.superbox.superbox import Operators, Superbox
from freshet.kernels.table_join import Version
from freshet.model import Chain, Fold, Keep, Operator, Train
from freshet.model.promises.keep import Timing

_SURE: Final = 2.0
"""The first part still fits if it takes so many times as long as expected."""
LITTLE: Final = 0.02
"""If less than this share of what was read still fits, it is not worth a call of the operators."""


def first_share(timing: Timing, every: float = math.inf) -> float:
    """The share of what an instance is to read that its first part reads.

    An instance that has much more time than it is expected to take has one part.

    Args:
        timing: How long all of it is expected to take, and may take.
        every: Seconds of a part, at most.

    >>> [first_share(Timing(0.1, may)) for may in (0.3, 0.1)], round(first_share(Timing(0.1, 0.3), every=0.005), 3)
    ([1.0, 0.5], 0.05)
    """
    expected, may = timing
    return 1.0 if expected <= 0.0 else min(1.0, max(LITTLE, min(may / _SURE, every) / expected))


def next_share(share: float, spent: float, timing: Timing, every: float = math.inf) -> float:
    """The share that will have been read after one more part; the same one: no further part fits.

    All that fits at the pace so far is D/T of it (RT §4.4, Eq. 2). A part doubles what was read at most, so a pace that
    changes is seen in time.

    Args:
        share: What was read so far.
        spent: Seconds that this has taken.
        timing: How long all of it was expected to take, and may take.
        every: Seconds of a part, at most.

    >>> timing = Timing(0.1, 0.08)
    >>> [round(next_share(0.4, spent, timing), 2) for spent in (0.02, 0.04, 0.06, 0.09)]
    [0.8, 0.8, 0.53, 0.4]
    >>> round(next_share(0.4, 0.06, timing, every=0.001), 3)
    0.407
    """
    if spent <= 0.0:
        return 1.0
    pace = share / spent
    fits = min(1.0, pace * timing.may)
    if fits < min(1.0, share * (1.0 + LITTLE)):
        return share
    return min(fits, share + min(share, pace * every))


def timing_of(chains: Sequence[Chain]) -> Timing | None:
    """How long chains may take; None: nobody minds."""
    keeps = (train.keep for chain in chains for train in chain.trains)
    return next((keep.timing for keep in keeps if keep is not None and keep.timing is not None), None)


def run_in_parts(
    chains: Sequence[Chain], setting: Setting, timing: Timing, stopwatch: Callable[[], float] = perf_counter
) -> Iterator[Made]:
    """Runs the chains of one instance; their results say which share of what was to be kept was read.

    Args:
        chains: The chains, each after those that it reads.
        setting: What they need.
        timing: How long they are expected to take, and may take.
        stopwatch: Tells the time.
    """
    began, band, share = stopwatch(), _Band(setting), 0.0
    upto, found = first_share(timing), None
    while True:
        part = list(Runner(chains, band.between(share, upto)).run())
        failure = next((made.failure for made in part if made.failure is not None), None)
        if failure is not None:  # they serve one query
            yield from (replace(made, table=None, failure=made.failure or failure) for made in part)
            return
        found = part if found is None else list(map(_together, found, part))
        if band.is_last:
            break
        share, upto = upto, next_share(upto, stopwatch() - began, timing)
    yield from (replace(made, share=upto) for made in found)


def _together(one: Made, more: Made) -> Made:
    """What a chain did in two parts."""
    return replace(
        one,
        table=pa.concat_tables([_as_table(one.table), _as_table(more.table)]),
        entered=_sums(one.entered, more.entered),
        passed=_sums(one.passed, more.passed),
        nanos=_sums(one.nanos, more.nanos),
        errors=one.errors + more.errors,
    )


def _sums(one: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(sum, zip(one, more, strict=True)))


def _as_table(made: pa.Table | pa.RecordBatch | None) -> pa.Table:
    return pa.Table.from_batches([made]) if isinstance(made, pa.RecordBatch) else made


@dataclass(slots=True)
class _Memories:
    """A fold's memory, and the time that is to have passed when the unit has been processed."""

    memory: Memory
    after: tuple[int | None, ...]


class _Band:
    """What the chains find in one part; implements :class:`freshet.kernels.running.Setting`."""

    def __init__(self, whole: Setting) -> None:
        self._whole = whole
        self.rows_out, self.blameless = whole.rows_out, whole.blameless
        self._low, self._high = 0.0, 1.0
        self._tables: dict[tuple[str, int, int], pa.Table] = {}
        self._memories: dict[str, _Memories] = {}

    @property
    def is_last(self) -> bool:
        """Whether time passes with this part: it reads all that is left, or nothing any more."""
        return self._high >= 1.0 or self._high == self._low

    def between(self, low: float, high: float) -> _Band:
        """The same for the part between two shares of what is to be kept."""
        self._low, self._high = low, high
        return self

    def operators(self, nodes: Sequence[int]) -> tuple[Operator, ...]:
        return self._whole.operators(nodes)

    def inputs(self, node: int) -> Sequence[pa.Schema]:
        return self._whole.inputs(node)

    def behind(self, node: int) -> pa.Schema:
        return self._whole.behind(node)

    def superbox(self, chains: tuple[Operators, ...], schema: pa.Schema) -> Superbox:
        return self._whole.superbox(chains, schema)

    def fold(self, operator: Fold, inputs: Sequence[pa.Schema]) -> CompiledFold:
        return self._whole.fold(operator, inputs)

    def versions(self, table: str) -> Sequence[Version]:
        return self._whole.versions(table)

    def memory(self, fold: str, compiled: CompiledFold) -> Memory:
        if fold not in self._memories:
            made = self._whole.memory(fold, compiled)
            self._memories[fold] = _Memories(made, made.after)
        known = self._memories[fold]
        known.memory.after = known.after if self.is_last else known.memory.before
        return known.memory

    def read(self, train: Train, columns: pa.Schema) -> pa.Table:
        keep = train.keep
        assert keep is not None, "every train of an instance in parts says what is kept of it"
        key = train.stream, train.first, train.end
        if key not in self._tables:
            self._tables[key] = self._whole.read(replace(train, keep=None), columns)
        band = self._below(train, keep, self._high)
        if self._low > 0.0:
            band &= ~self._below(train, keep, self._low)
        kept, table = np.flatnonzero(band), self._tables[key]
        # By their numbers: a mask takes longer.
        return table if len(kept) == len(table) else table.take(pa.array(kept))

    def _below(self, train: Train, keep: Keep, share: float) -> np.ndarray:
        return kept_mask(replace(train, keep=replace(keep, ratio=keep.ratio * share)))
