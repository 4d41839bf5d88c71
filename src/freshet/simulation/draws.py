"""Draws: which tuples a simulated operator lets through."""

from __future__ import annotations

from zlib import crc32

import numpy as np


class Draws:
    """Whether an operator lets a tuple through, by the tuple's place in the source stream.

    Drawn once per (seed, operator, place), so that answers do not depend on the schedule and runs repeat exactly.

    >>> draws = Draws(seed=1, name="q.filter_1", selectivity=0.5)
    >>> bool((draws.passes(np.arange(100)) == draws.passes(np.arange(100))).all())
    True
    >>> bool(0.48 < draws.passes(np.arange(10_000)).mean() < 0.52)
    True
    """

    def __init__(self, seed: int, name: str, selectivity: float) -> None:
        self._random = np.random.Generator(np.random.Philox(key=[seed, crc32(name.encode())]))
        self._selectivity = selectivity
        self._pass = np.empty(0, dtype=bool)

    def passes(self, origins: np.ndarray) -> np.ndarray:
        """Whether each of these tuples is let through."""
        last = int(origins[-1]) if len(origins) else -1
        while last >= len(self._pass):
            block = self._random.random(max(4096, len(self._pass))) < self._selectivity
            self._pass = np.concatenate([self._pass, block])
        passes: np.ndarray = self._pass[origins]
        return passes
