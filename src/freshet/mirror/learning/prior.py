"""What is believed of a change rate before the first poll."""

from __future__ import annotations

from dataclasses import dataclass

from freshet.model import UserError


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
