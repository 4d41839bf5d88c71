"""How high the keys of a stream had come after each number of rows, in memory that grows with its logarithm."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_LOWEST: Final = np.iinfo(np.int64).min
_FINE: Final = 6
"""Of the last 2^6 rows every height is kept, and between twice as many and four times as many every second one."""


@dataclass(frozen=True, slots=True)
class KeyHeights:
    """The greatest key of the first i rows, for some i: the farther back, the fewer of them. Which of them are kept
    depends on the number of rows alone, so batches change nothing. It never changes itself: :meth:`after` gives
    another one.

    A question about any i is answered for the next lower one that is kept. That one is at most a 32nd part farther
    back, so whoever asks errs to the safe side.

    Args:
        rows: Number of rows.
        kept: The heights that are kept, those of the earliest rows first.
        sizes: For each of them, the bytes of all rows so far, as far as they differ from row to row.

    >>> heights = KeyHeights().after(np.array([3, 9, 4, 7]))
    >>> heights.rows, heights.at(1), heights.newest, heights.at(0)
    (4, 3, 9, None)
    >>> many = heights.after(np.arange(10, 1_000_000))
    >>> len(many.kept), many.at(many.rows - 500)
    (509, 999493)
    """

    rows: int = 0
    kept: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    sizes: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def newest(self) -> int | None:
        """The greatest key of all."""
        return int(self.kept[-1]) if self.rows else None

    def at(self, row: int) -> int | None:
        """The greatest key of the first ``row`` rows, or of somewhat fewer; None: of none."""
        places = _kept_places(self.rows)
        found = int(np.searchsorted(places, row, side="right"))
        return int(self.kept[found - 1]) if found else None

    def reached(self, key: int) -> int:
        """After how many rows the keys had not yet come as far as a key, or somewhat fewer."""
        found = int(np.searchsorted(self.kept, key))
        return int(_kept_places(self.rows)[found - 1]) if found else 0

    def since(self, keys: Ints) -> tuple[Ints, Ints]:
        """For each of some keys, how many rows came since the keys had not yet come as far, or somewhat more, and their
        bytes."""
        places = np.concatenate([[0], _kept_places(self.rows)])
        sizes = np.concatenate([[0], self.sizes])
        found = np.searchsorted(self.kept, keys)
        return self.rows - places[found], sizes[-1] - sizes[found]

    def behind(self, places: Ints) -> tuple[Ints, Ints]:
        """How many rows came after each of some numbers of rows, or somewhat fewer, and their bytes.

        >>> KeyHeights().after(np.arange(10)).behind(np.array([7, 10, 12]))[0].tolist()
        [3, 0, 0]
        """
        known, sizes = np.concatenate([[0], _kept_places(self.rows)]), np.concatenate([[0], self.sizes])
        first = _ceil_kept(np.full(len(places), self.rows), places)
        return self.rows - first, sizes[-1] - sizes[np.searchsorted(known, first)]

    def before(self, rows: int) -> KeyHeights:
        """The heights when there were only so many rows, as far as it is still known: what is counted by them is too
        much rather than too little.

        >>> heights = KeyHeights().after(np.arange(1000))
        >>> heights.before(900).newest, heights.before(100).newest, heights.before(0).newest
        (899, 111, None)
        """
        wanted, known = _kept_places(rows) if rows > 0 else np.empty(0, np.int64), _kept_places(self.rows)
        # Later heights are not lower, and earlier rows have not more bytes; but all rows have not fewer.
        above, below = np.searchsorted(known, wanted), np.searchsorted(known, wanted, side="right")
        sizes = np.concatenate([[0], self.sizes])[below]
        if len(wanted):
            sizes[-1] = self.sizes[above[-1]]
        return KeyHeights(max(0, rows), self.kept[above], sizes)

    def after(self, keys: Ints, sizes: Ints | None = None) -> KeyHeights:
        """The heights with some more rows."""
        return Climb(self, keys, sizes).heights


class Climb:
    """The heights of a stream while some more rows come.

    Args:
        before: The heights before them.
        keys: Their keys.
        sizes: Their bytes, as far as they differ from row to row; None: they do not.
    """

    def __init__(self, before: KeyHeights, keys: Ints, sizes: Ints | None = None) -> None:
        self._rows = before.rows + np.arange(len(keys))
        """Number of rows before each of the new ones."""
        first = before.newest
        start = np.array([_LOWEST if first is None else first])
        heights = np.maximum.accumulate(np.concatenate([start, keys]))
        self.before: Final = heights[:-1]
        """The greatest key before each row; the least number of all: there is none."""
        places = np.concatenate([[0], _kept_places(before.rows), before.rows + 1 + np.arange(len(keys))])
        self._places, self._heights = places, np.concatenate([[_LOWEST], before.kept, heights[1:]])
        self._keys = keys
        known = before.sizes if len(before.sizes) else np.zeros(len(before.kept), np.int64)
        more = np.zeros(len(keys), np.int64) if sizes is None else sizes
        start = known[-1:] if len(known) else np.zeros(1, np.int64)
        self._sizes = np.concatenate([[0], known, start + np.cumsum(more)])
        total = before.rows + len(keys)
        chosen = np.searchsorted(places, _kept_places(total))
        self.heights: Final = KeyHeights(total, self._heights[chosen], self._sizes[chosen])
        """The heights after all of them."""

    def displacements(self) -> Ints:
        """By how many rows each row comes after the first one with an equal or greater key, or somewhat more."""
        lower = self._places[np.searchsorted(self._heights, self._keys) - 1]
        after: Ints = self._rows - _floor_kept(self._rows, np.minimum(lower, self._rows))
        return after

    def reached(self, upto: int) -> Ints:
        """The greatest keys of the first rows, up to and with the new one in this place."""
        return self._heights[: len(self._heights) - len(self._rows) + upto + 1]

    def since(self, keys: Ints, places: Ints) -> tuple[Ints, Ints]:
        """After the new row in each of some places: how many rows had come since the keys had not yet come as far as a
        key, or somewhat more, and their bytes."""
        rows = self._rows[places] + 1
        lower = np.minimum(self._places[np.searchsorted(self._heights, keys) - 1], rows)
        first = _floor_kept(rows, lower)
        sizes = self._sizes[np.searchsorted(self._places, np.stack([rows, first]))]
        return rows - first, sizes[0] - sizes[1]

    def newest(self, places: Ints) -> Ints:
        """The greatest key so far after the new row in each of some places."""
        heights: Ints = self._heights[len(self._heights) - len(self._rows) + places]
        return heights

    def behind(self, upto: Ints, places: Ints) -> tuple[Ints, Ints]:
        """After the new row in each of some places: how many rows had come after a number of rows, or somewhat fewer,
        and their bytes."""
        rows = self._rows[places] + 1
        first = _ceil_kept(rows, upto)
        sizes = self._sizes[np.searchsorted(self._places, np.stack([rows, first]))]
        return rows - first, sizes[0] - sizes[1]

    def so_far(self, back: int) -> Ints:
        """For each row, the greatest key of the rows that lie at least so many rows before its end of the stream."""
        places = _floor_kept(self._rows, self._rows - back)
        heights: Ints = self._heights[np.searchsorted(self._places, np.maximum(places, 0))]
        return heights


def _grain(back: Ints) -> Ints:
    """Every how many rows a height is kept that lies so far back."""
    _, exponents = np.frexp(back.astype(np.float64))
    grains: Ints = np.int64(1) << np.maximum(exponents.astype(np.int64) - _FINE, 0)
    return grains


def _floor_kept(rows: Ints, places: Ints) -> Ints:
    """The greatest number that is kept and not above ``places``, when there are so many rows."""
    while True:
        lower = places - places % _grain(rows - places)
        if np.array_equal(lower, places):
            return lower
        places = lower


def _ceil_kept(rows: Ints, places: Ints) -> Ints:
    """The least number that is kept and not below ``places``, when there are so many rows; at most all of them."""
    inside = np.minimum(places, rows)
    grains = _grain(rows - inside)
    higher: Ints = np.minimum(-(-inside // grains) * grains, rows)
    return higher


def _kept_places(rows: int) -> Ints:
    """The numbers of rows whose heights are kept when there are so many rows."""
    parts = [np.arange(max(rows - (1 << _FINE) + 1, 1), rows + 1)]
    octave = _FINE
    while (1 << octave) < rows:
        grain = 1 << (octave + 1 - _FINE)
        lowest, highest = rows - (2 << octave) + 1, rows - (1 << octave)
        first = -(-max(lowest, 1) // grain) * grain
        parts.append(np.arange(first, highest + 1, grain))
        octave += 1
    return np.concatenate(parts[::-1]).astype(np.int64)
