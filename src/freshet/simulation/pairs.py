"""Draws for joins: which pairs of simulated tuples match."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Origins = NDArray[np.int64]
"""Places of tuples in their source stream."""


class PairDraws:
    """The keys of the tuples of a join's two inputs, drawn once per (seed, operator, port, place). Two tuples match if
    their keys are equal, which a pair does with a probability of ``selectivity`` (RT §4.1.2).

    >>> draws = PairDraws(seed=1, name="q.join", selectivity=1e-2)
    >>> left, right = np.arange(1000), np.arange(500)
    >>> 4500 < len(draws.matches([left, right])) < 5500
    True
    >>> half = draws.matches([left[:500], right])
    >>> bool(len(half) == (draws.matches([left, right]) < 500).sum())
    True
    """

    def __init__(self, seed: int, name: str, selectivity: float) -> None:
        self._count = max(1, round(1.0 / selectivity))
        self._random = [
            np.random.Generator(np.random.Philox(key=[seed, crc32(f"{name} {port}".encode())])) for port in range(2)
        ]
        self._keys = [np.empty(0, dtype=np.int64) for _ in range(2)]

    def matches(self, ports: Sequence[Origins]) -> NDArray[np.intp]:
        """The places among the tuples of the first input that match, once for each partner."""
        left, right = (self._of(port, origins) for port, origins in enumerate(ports))
        partners = np.bincount(right, minlength=self._count)
        return np.repeat(np.arange(len(left)), partners[left])

    def _of(self, port: int, origins: Origins) -> NDArray[np.int64]:
        known, last = self._keys[port], int(origins.max()) if len(origins) else -1
        while last >= len(known):
            more = self._random[port].integers(0, self._count, max(4096, len(known)))
            known = self._keys[port] = np.concatenate([known, more])
        keys: NDArray[np.int64] = known[origins]
        return keys
