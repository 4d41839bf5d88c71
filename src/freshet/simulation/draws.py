"""Draws: how many tuples a simulated operator gives out for each tuple that it takes."""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

_SHORT: Final = 10_000
"""Maximum number of tuples of which draws are remembered."""


class Draws:
    """What becomes of a tuple in an operator, by the tuple's place in the source stream.

    Drawn once per (seed, operator, place), so that answers do not depend on the schedule and runs repeat exactly.

    >>> draws = Draws(seed=1, name="q.filter_1", selectivity=0.5)
    >>> bool((draws.passes(np.arange(100)) == draws.passes(np.arange(100))).all())
    True
    >>> bool(0.48 < draws.passes(np.arange(10_000)).mean() < 0.52)
    True
    >>> set(Draws(seed=1, name="q.join", selectivity=2.5).copies(np.arange(100)).tolist())
    {2, 3}
    """

    def __init__(self, seed: int, name: str, selectivity: float) -> None:
        self._random = np.random.Generator(np.random.Philox(key=[seed, crc32(name.encode())]))
        self._whole = int(selectivity)
        self._share = selectivity - self._whole
        self._pass = np.empty(0, dtype=bool)

    def passes(self, origins: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each of these tuples is let through, if at most one comes of each."""
        last = int(origins.max()) if len(origins) else -1
        while last >= len(self._pass):
            block = self._random.random(max(4096, len(self._pass))) < self._share
            self._pass = np.concatenate([self._pass, block])
        passes: NDArray[np.bool_] = self._pass[origins]
        return passes

    def copies(self, origins: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many tuples come of each of these."""
        return self._whole + self.passes(origins).astype(np.int64)


class PartnerAges:
    """How old the partner of a tuple is in a simulated join: evenly between nothing and the time that the join
    remembers. Drawn once per (seed, operator, place), like :class:`Draws`.

    >>> ages = PartnerAges(seed=1, name="q.join", lasts=10.0).of(np.arange(1000))
    >>> bool(0.0 <= ages.min() < 1.0 and 9.0 < ages.max() < 10.0)
    True
    """

    def __init__(self, seed: int, name: str, lasts: float) -> None:
        self._random = np.random.Generator(np.random.Philox(key=[seed, crc32(f"{name} partner".encode())]))
        self._lasts, self._ages = lasts, np.empty(0)

    def of(self, origins: NDArray[np.int64]) -> NDArray[np.float64]:
        """Seconds by which the partner of each of these tuples is older."""
        last = int(origins.max()) if len(origins) else -1
        while last >= len(self._ages):
            block = self._random.random(max(4096, len(self._ages))) * self._lasts
            self._ages = np.concatenate([self._ages, block])
        ages: NDArray[np.float64] = self._ages[origins]
        return ages


def first_passes(seed: int, name: str, selectivity: float, count: int) -> NDArray[np.bool_]:
    """Which of the first tuples are let through; remembered for short runs, many of which have equal draws."""
    return (_remembered if count <= _SHORT else _drawn)(seed, name, selectivity, count)


def _drawn(seed: int, name: str, selectivity: float, count: int) -> NDArray[np.bool_]:
    return Draws(seed, name, selectivity).passes(np.arange(count))


_remembered = lru_cache(maxsize=4096)(_drawn)
