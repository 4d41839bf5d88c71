"""Single exponential smoothing."""

from __future__ import annotations


class Smoothed:
    """A parameter learned from observations: C = C (1 - α) + C_new α (RT §4.1.3).

    The first observation is taken as it is. Observations have weights, so that the cost per tuple of a train
    of one tuple does not count as much as that of a train of 100,000. The formula smooths both the weighted sum and
    the weights, and the value is their quotient. With equal weights this is the formula itself. A weight of 0
    changes nothing.

    Args:
        alpha: Share of the newest observation, in (0, 1].
        prior: Value before the first observation.

    >>> cost = Smoothed(alpha=0.5, prior=1.0)
    >>> cost.value
    1.0
    >>> cost.observe(4.0); cost.observe(8.0); cost.value
    6.0
    >>> cost.observe(100.0, weight=0.01); round(cost.value, 2)
    6.93
    """

    __slots__ = ("_sum", "_weight", "alpha", "value")

    def __init__(self, alpha: float = 0.2, prior: float = 0.0) -> None:
        if not 0.0 < alpha <= 1.0:
            raise ValueError(f"alpha {alpha} is outside (0, 1]")
        self.alpha = alpha
        self.value = prior
        self._sum = 0.0
        self._weight = 0.0

    @property
    def learned(self) -> bool:
        """Whether anything has been observed."""
        return self._weight > 0.0

    def observe(self, value: float, weight: float = 1.0) -> None:
        """Takes in one observation."""
        if weight <= 0.0:
            return
        alpha = self.alpha if self._weight else 1.0
        self._sum += alpha * (value * weight - self._sum)
        self._weight += alpha * (weight - self._weight)
        self.value = self._sum / self._weight
