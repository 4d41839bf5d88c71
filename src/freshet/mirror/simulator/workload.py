"""The workloads of CAR chapter 2: gamma change rates, Zipf worth, Pareto sizes, in several alignments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements

Floats = NDArray[np.float64]
Alignment = Literal["aligned", "reverse", "shuffled"]


@dataclass(frozen=True, slots=True)
class MirrorWorkload:
    """A mirror with elements in the order of their worth (CAR Tables 2.2 and 2.3).

    Args:
        objects: Number of elements.
        updates: Changes per period, of all elements.
        syncs: Polls per period: the budget.
        theta: Skew of the worth: element i is worth (1 / i)^theta.
        deviation: Standard deviation of the change rates; their mean is updates / objects.
        rates: How change rates lie along the worth.
        sizes: How sizes lie along the worth; None for equal sizes.
        pareto: Shape of the Pareto distribution of sizes, whose mean is 1.
        seed: Seed of all draws.

    >>> elements = MirrorWorkload(theta=1.0).elements()
    >>> len(elements), round(float(elements.rates.mean()), 6)
    (500, 2.0)
    """

    objects: int = 500
    updates: float = 1000.0
    syncs: float = 250.0
    theta: float = 1.0
    deviation: float = 1.0
    rates: Alignment = "shuffled"
    sizes: Alignment | None = None
    pareto: float = 1.1
    seed: int = 1

    def elements(self) -> Elements:
        """Draws the elements; the same seed draws the same rates for every skew and alignment."""
        rng = np.random.default_rng(self.seed)
        mean = self.updates / self.objects
        shape = (mean / self.deviation) ** 2
        rates = rng.gamma(shape, mean / shape, self.objects)
        rates *= mean / rates.mean()
        worth = np.arange(1.0, self.objects + 1) ** -self.theta
        return Elements.of(align(rates, self.rates, rng), worth / worth.sum(), self._sizes(rng))

    def _sizes(self, rng: np.random.Generator) -> Floats:
        if self.sizes is None:
            return np.ones(self.objects)
        sizes = 1.0 + rng.pareto(self.pareto, self.objects)
        return align(sizes / sizes.mean(), self.sizes, rng)


def align(values: Floats, alignment: Alignment, rng: np.random.Generator) -> Floats:
    """Sorts values from the greatest (aligned), from the least (reverse), or not at all.

    >>> align(np.array([2.0, 3.0, 1.0]), "aligned", np.random.default_rng())
    array([3., 2., 1.])
    """
    if alignment == "shuffled":
        return rng.permutation(values)
    rising = np.sort(values)
    return rising if alignment == "reverse" else rising[::-1].copy()
