"""What an operator costs, as least squares with forgetting tell it apart from what it reads and what it puts out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_FORGET: Final = 0.05
"""Share by which each run makes earlier ones count less."""
_NEAR: Final = 1e-6
"""Weight of what was known before, relative to the runs: it decides only what the runs leave open."""
_COLD: Final = 5
"""Number of first runs that may be cold: they compile and fill caches."""
_WARM: Final = 0.5
"""One of the first runs that takes less than this share of what was expected shows that those before it were cold."""


class OperatorCost:
    """Seconds of an operator: a price for each tuple of each input, and one for each tuple that it puts out.

    A selection takes n C_p + n s C_i (RT §4.1.1). A symmetric hash join takes n_L (C_RProbe + C_LHash) +
    n_R (C_LProbe + C_RHash) + pairs C_i (RT §4.1.2). The other kinds of RT Table 1 have the same two terms; a join with
    a table puts out its matches. One run cannot tell the terms apart: they follow from all runs, of which each counts
    less than the one after it. Where the runs leave something open, because selectivities hardly changed, the values
    stay near those that were known before. None of them is below 0.

    Args:
        ports: Number of inputs.
        per_row: Seconds for each tuple to assume before the first run.
        per_output: The same for each tuple that it puts out.
        forget: Share by which each run makes earlier ones count less (RT §4.1.3: alpha).

    >>> selection = OperatorCost()
    >>> selection.observe([1000], 200, 180e-6)
    >>> selection.observe([1000], 600, 220e-6)
    >>> round(selection.per_row[0] * 1e6, 3), round(selection.per_output * 1e6, 3)
    (0.16, 0.1)
    """

    _most: float
    """Number of tuples of a large run."""

    def __init__(self, ports: int = 1, per_row: float = 1e-6, per_output: float = 0.0, forget: float = _FORGET) -> None:
        self._forget = forget
        self._prior = np.array([per_row] * ports + [per_output])
        self._forgotten()
        self.runs = 0

    @classmethod
    def given(cls, per_row: Sequence[float], per_output: float) -> OperatorCost:
        """Costs that are known.

        >>> OperatorCost.given([5e-6, 5e-6], 0.2e-6).seconds([4000, 4000], 1600)
        0.04032
        """
        cost = cls(len(per_row))
        cost._know(np.array([*per_row, per_output]))
        return cost

    @property
    def per_row(self) -> tuple[float, ...]:
        """Seconds for each tuple of each input."""
        return tuple(self._known[:-1].tolist())

    @property
    def per_output(self) -> float:
        """Seconds for each tuple that it puts out."""
        return float(self._known[-1])

    @property
    def learned(self) -> bool:
        """Whether a run was seen."""
        return self.runs > 0

    def seconds(self, rows_in: Sequence[float], rows_out: float) -> float:
        """Seconds of a run over these numbers of input tuples."""
        # Asked hundreds of times for each decision: plain numbers are faster here than arrays.
        terms = self._terms
        found = terms[-1] * rows_out
        for rows, each in zip(rows_in, terms, strict=False):
            found += rows * each
        return found

    def observe(self, rows_in: Sequence[float], rows_out: float, seconds: float) -> None:
        """Takes in a run; one that read nothing says nothing."""
        rows = sum(rows_in)
        if rows <= 0:
            return
        if 0 < self.runs < _COLD and seconds < _WARM * self.seconds(rows_in, rows_out):
            self._forgotten()
        self.runs += 1
        features = np.array([*rows_in, rows_out])
        # The variance of a time grows with the number of tuples, so runs count by its inverse.
        # A run over few tuples says little about many of them: it must not make larger ones forgotten.
        self._most = max(rows, (1.0 - self._forget) * self._most)
        forget = self._forget * rows / self._most
        self._squares += np.outer(features, features) / rows - forget * self._squares
        self._products += features * (seconds / rows) - forget * self._products
        self._know(self._solved())

    def _forgotten(self) -> None:
        terms = len(self._prior)
        self._most = 0.0
        self._squares, self._products = np.zeros((terms, terms)), np.zeros(terms)
        self._know(self._prior)

    def _know(self, terms: NDArray[np.float64]) -> None:
        self._known: NDArray[np.float64] = terms
        self._terms: list[float] = terms.tolist()

    def _solved(self) -> NDArray[np.float64]:
        """The terms that fit best, none below 0: while one is, the least of them becomes 0 and the others fit again."""
        near = _NEAR * np.trace(self._squares)
        squares = self._squares + near * np.eye(len(self._known))
        products = self._products + near * self._known
        free = list(range(len(self._known)))
        found = np.zeros(len(self._known))
        while free:
            found[:] = 0.0
            found[free] = np.linalg.solve(squares[np.ix_(free, free)], products[free])
            worst = min(free, key=lambda term: found[term])
            if found[worst] >= 0.0:
                break
            free.remove(worst)
        return found.clip(min=0.0)
