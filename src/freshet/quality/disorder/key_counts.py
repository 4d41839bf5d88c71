"""How often keys repeat, as rows come."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def _none() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """The multiplicity of a stream (WU §3.4.1), from its rows above the key mark alone: at most as many as its
    scrambling factor, because no row has a key at or below the mark any more. It never changes itself: :meth:`after`
    gives another one, and batches change nothing.

    Args:
        multiplicity: The greatest number of rows with the same key, of all rows so far.
        keys: The keys above the mark, each once, rising.
        counts: How many rows have each.

    >>> counts = KeyCounts().after(np.array([1, 2, 1, 3]), mark=1).after(np.array([3, 3, 4]), mark=3)
    >>> counts.multiplicity, counts.keys.tolist()
    (3, [4])
    """

    multiplicity: int = 0
    keys: Ints = field(default_factory=_none)
    counts: Ints = field(default_factory=_none)

    def after(self, keys: Ints, mark: int | None) -> KeyCounts:
        """The same with some more rows.

        Args:
            keys: Their keys, without those of rows that came past the mark.
            mark: The key mark after them; None: there is none.
        """
        found, places = np.unique(np.concatenate([self.keys, keys]), return_inverse=True)
        # Sums of whole numbers below 2^53 are exact.
        weights = np.concatenate([self.counts, np.ones(len(keys), np.int64)])
        counts = np.bincount(places, weights, len(found)).astype(np.int64)
        most = max(self.multiplicity, int(counts.max(initial=0)))
        above = slice(0 if mark is None else int(np.searchsorted(found, mark, side="right")), None)
        return KeyCounts(most, found[above], counts[above])
