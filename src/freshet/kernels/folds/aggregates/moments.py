"""Variances, from the number, the mean and the sum of squared deviations of each part.

Parts are merged as in T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae and a pairwise algorithm for
computing sample variances", 1979, but all at once. So nothing cancels out, however large the mean is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.folds.aggregates.partials import Loaded, Partial, ones
from freshet.kernels.folds.aggregates.sums import doubles
from freshet.kernels.folds.arrays import Ints, arrow

SPREADS: Final = {"var_pop": (0, False), "var_samp": (1, False), "stddev_pop": (0, True), "stddev_samp": (1, True)}
"""For each function the number of observations to subtract for the mean, and whether to take the root."""


@dataclass(frozen=True)
class Moments(Partial):
    """Number, mean and sum of squared deviations."""

    @property
    def fields(self) -> list[pa.Field]:
        return [pa.field(self.name(part), pa.float64()) for part in ("count", "mean", "m2")]

    def lift(self, values: pa.Array) -> Loaded:
        return Loaded((ones(values).astype(np.float64), doubles(values), np.zeros(len(values))))

    def reduce(self, loaded: Loaded, ids: Ints, groups: int) -> Loaded:
        count, mean, squares = loaded.arrays
        with np.errstate(invalid="ignore", over="ignore"):
            counts = np.bincount(ids, count, groups)
            means = np.bincount(ids, count * mean, groups) / np.maximum(counts, 1)
            away = np.where(count > 0, mean - means[ids], 0.0)
            return Loaded((counts, means, np.bincount(ids, squares + count * away * away, groups)))


def finish_spread(function: str, loaded: Loaded) -> pa.Array:
    """A variance or its root; NULL if there are too few observations."""
    count, _, squares = loaded.arrays
    used, root = SPREADS[function]
    with np.errstate(invalid="ignore"):
        spread = squares / np.maximum(count - used, 1)
        return arrow(np.sqrt(spread) if root else spread, pa.float64(), count > used)
