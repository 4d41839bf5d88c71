"""Elements that change by Poisson processes whose rates may drift, as polls see them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class ChangingElements:
    """Says of a poll whether something changed since the one before; the first poll of an element finds a change.

    Args:
        rates: True change rates.
        seed: Seed of all draws.

    >>> world = ChangingElements(np.array([0.0, 1e9]), seed=1)
    >>> [world.poll(element, now) for now in (0.0, 1.0) for element in (0, 1)]
    [True, True, False, True]
    """

    def __init__(self, rates: Floats, *, seed: int) -> None:
        self.rates = rates.copy()
        self._rng = np.random.default_rng(seed)
        # Expected changes since the last poll, up to the time of the last change of rates.
        self._expected = np.full(len(rates), np.inf)
        self._since = np.zeros(len(rates))

    def poll(self, element: int, now: float) -> bool:
        """Polls an element."""
        expected = self._expected[element] + self.rates[element] * (now - self._since[element])
        self._expected[element], self._since[element] = 0.0, now
        return bool(self._rng.random() < -np.expm1(-expected))

    def drift(self, rates: Floats, now: float) -> None:
        """From now on the elements change at other rates."""
        self._expected += self.rates * (now - self._since)
        self._since[:] = now
        self.rates = rates.copy()
