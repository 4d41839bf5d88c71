"""What is believed of a change rate before the first poll."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.learning.equation import information, solve_rates
from freshet.mirror.learning.intervals import Seen
from freshet.model import UserError

Floats = NDArray[np.float64]

_POPULATION: Final = 20
"""Minimum number of elements from which a prior is learned."""
_WEAK: Final = 0.05
"""Shape of a prior that says hardly anything."""
_TELLING: Final = 2.0
"""Squared mean over variance that an estimate must have to count."""
_SHAPES: Final = (0.5, 2.0)


@dataclass(frozen=True, slots=True)
class RatePrior:
    """A gamma distribution of change rates: as if ``shape`` changes had been seen in ``shape / mean`` seconds.

    Args:
        mean: Expected changes per second.
        shape: How firm the belief is, in changes.

    >>> RatePrior(mean=0.5, shape=1.0).seconds
    2.0
    """

    mean: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        if not (0.0 < self.mean < float("inf") and 0.0 < self.shape < float("inf")):
            raise UserError(f"a prior needs a positive mean and shape, not {self.mean} and {self.shape}")

    @property
    def seconds(self) -> float:
        """The time that the belief stands for."""
        return self.shape / self.mean


def fit_prior(seen: Seen, *, before: RatePrior) -> RatePrior:
    """The mean and the firmness of a prior, from what was seen of all elements (an empirical Bayes estimate).

    The spread of estimates is that of the rates plus the errors of the estimates; the latter is known and taken off.
    Elements whose polls say little do not count.

    Args:
        seen: What polls have told of each element.
        before: The belief if too little was seen.

    >>> many = np.full(50, 20.0)
    >>> fit_prior(Seen(many[None], many[None], 2 * many, 0 * many, 0 * many), before=RatePrior(mean=9.0))
    RatePrior(mean=0.40..., shape=2.0)
    """
    gaps, weak = seen.gaps, seen.quiet_time + _WEAK / before.mean
    rates = solve_rates(seen.dated + _WEAK, weak, seen.changes, gaps)
    known = information(rates, seen.dated + _WEAK, seen.changes, gaps)
    telling = known * rates * rates >= _TELLING
    if np.count_nonzero(telling) < _POPULATION:
        return before
    rates, known = rates[telling], known[telling]
    mean = float(rates.mean())
    spread = max(float(rates.var() - (1.0 / known).mean()), mean * mean / _SHAPES[1])
    return RatePrior(mean, max(mean * mean / spread, _SHAPES[0]))
