"""What a plan must know of an order of polling."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class PollOrder(Protocol):
    """Freshness and its derivatives as functions of r, the changes expected between two polls.

    The gain g(r) = -r^2 dF/dr lies in [0, 1) and rises with r. One more poll a second of an element with change rate
    lambda adds g(r) / lambda to its freshness, so an optimal plan has p g(r) / (lambda s) = mu for every element that
    it polls (CAR §2.7, Eq. 2.5; the sign of footnote 7 is wrong in print).
    """

    @property
    def name(self) -> str:
        """As users write it."""

    def freshness(self, r: Floats) -> Floats:
        """Time-averaged freshness."""

    def gain(self, r: Floats) -> Floats:
        """The gain g."""

    def lack(self, r: Floats) -> Floats:
        """1 - g, exact where g is near 1."""

    def slope(self, r: Floats) -> Floats:
        """The derivative of g by r."""

    def inverse(self, gain: Floats, lack: Floats) -> Floats:
        """The r that has this gain; ``lack`` is 1 - gain, with all digits."""

    def age(self, r: Floats) -> Floats:
        """Expected age over the mean time between two polls."""
