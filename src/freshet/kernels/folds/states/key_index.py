"""The rows of a slab by the hashes of some keys, and within a hash by the time from which on they are valid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from freshet.kernels.folds.arrays import Ints
from freshet.kernels.folds.sorting import Runs, running_maximum, stable_order
from freshet.kernels.folds.states.hashing import ALL_HASHES, Hashes

SHORT: Final = 64
"""With more rows of one hash than this, rows are searched by time, too."""
FEW: Final = 4
"""So they are if in the mean a row shares its hash with more others than this. With fewer it is quicker to look at all
of them than to search among them."""


class ValidTimes(NamedTuple):
    """When rows are valid: from ``start`` until ``end``."""

    start: Ints
    end: Ints


class _Ordered(NamedTuple):
    """Rows of many hashes with many rows each."""

    words: Hashes
    """The different hashes."""
    starts: Runs
    latest: Runs
    """Until when a row or one before it, of the same hash, is valid."""
    exact: bool
    """Whether no row before one, of the same hash, is valid for longer."""


@dataclass(frozen=True)
class KeyIndex:
    """An index of rows.

    Args:
        hashes: The hashes of all rows, sorted.
        rows: The numbers of the rows, in that order. Rows of one hash are sorted by their times, then by number.
        times: When rows are valid, by number; None: always.
    """

    hashes: Hashes
    rows: npt.NDArray[np.int32]
    times: ValidTimes | None

    @classmethod
    def of(cls, hashes: Hashes, times: ValidTimes | None) -> KeyIndex:
        """The index of rows with these hashes."""
        rows = np.arange(len(hashes)) if times is None else _by_time(times.start)
        rows = rows[stable_order(hashes[rows], ALL_HASHES)]
        return cls(hashes[rows], rows.astype(np.int32), times)

    @classmethod
    def merged(cls, indexes: Sequence[KeyIndex], skipped: int, times: ValidTimes | None) -> KeyIndex:
        """The index of the rows of several slabs one after the other, without the first ``skipped`` rows."""
        begins = np.cumsum([0, *(len(index.rows) for index in indexes)]) - skipped
        hashes = np.concatenate([index.hashes for index in indexes])
        rows = np.concatenate([index.rows + begin for index, begin in zip(indexes, begins[:-1], strict=True)])
        if skipped:
            hashes, rows = hashes[rows >= 0], rows[rows >= 0]
        # What is sorted in stretches is merged, not sorted.
        order = np.argsort(hashes, kind="stable")
        hashes, rows = hashes[order], rows[order].astype(np.int32)
        if times is not None:
            _mend(hashes, rows, times.start)
        return cls(hashes, rows, times)

    @property
    def nbytes(self) -> int:
        """Memory that it takes, except for the times."""
        return int(self.hashes.nbytes + self.rows.nbytes) * (3 if self._ordered else 1)

    @property
    def is_exact(self) -> bool:
        """Whether :meth:`find` finds, for hashes with times, only rows that are valid then."""
        return self._ordered is not None and self._ordered.exact

    def find(self, hashes: Hashes, times: ValidTimes | None = None) -> tuple[Ints, Ints]:
        """For each hash the range of places in :attr:`rows` that may have it, and may be valid at the given times."""
        ordered = self._ordered
        if ordered is None or times is None:
            return self._equal(hashes)
        codes = np.searchsorted(ordered.words, hashes)
        known = ordered.words[np.minimum(codes, len(ordered.words) - 1)] == hashes
        lo = ordered.latest.first(codes, times.start + 1)
        hi = np.maximum(ordered.starts.first(codes, times.end), lo)
        return lo, np.where(known, hi, lo)

    def _equal(self, hashes: Hashes) -> tuple[Ints, Ints]:
        """For each hash the range of places that have it."""
        lo = np.searchsorted(self.hashes, hashes)
        if not len(self.hashes):
            return lo, lo
        # Only for those that are there it is worth a search where they end.
        found = np.flatnonzero(self.hashes[np.minimum(lo, len(self.hashes) - 1)] == hashes)
        hi = lo.copy()
        hi[found] = np.searchsorted(self.hashes, hashes[found], "right")
        return lo, hi

    @cached_property
    def _ordered(self) -> _Ordered | None:
        """None if hashes have few rows each."""
        heads = np.flatnonzero(np.concatenate([[True], self.hashes[1:] != self.hashes[:-1]]))
        counts = np.diff(heads, append=len(self.hashes))
        if self.times is None or (int(counts.max(initial=0)) <= SHORT and counts @ counts <= FEW * len(self.hashes)):
            return None
        codes, size = np.repeat(np.arange(len(heads)), counts), len(heads)
        latest = running_maximum(codes, size, self.times.end[self.rows])
        starts, ends = Runs(codes, size, self.times.start[self.rows]), Runs(codes, size, latest)
        return _Ordered(self.hashes[heads], starts, ends, np.array_equal(latest, self.times.end[self.rows]))


def _by_time(start: Ints) -> Ints:
    if bool((start[1:] >= start[:-1]).all()):
        return np.arange(len(start))
    return np.argsort(start, kind="stable")


def _mend(hashes: Hashes, rows: npt.NDArray[np.int32], start: Ints) -> None:
    """Sorts the rows of each hash by time, where slabs overlap in time."""
    same = hashes[1:] == hashes[:-1]
    again = np.flatnonzero(same)
    wrong = again[start[rows[again + 1]] < start[rows[again]]]
    if len(wrong):
        groups = np.cumsum(np.concatenate([[0], ~same]))
        some = np.flatnonzero(np.isin(groups, groups[wrong]))
        rows[some] = rows[some][np.lexsort((start[rows[some]], groups[some]))]
