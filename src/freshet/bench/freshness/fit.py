"""What it costs a step to handle rows outside of its operators: reading trains, writing files."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.bench.rig.notes import StepNote

SUFFIXES: Final = ("filter_1", "filter_2", "project")
"""The operators of a query, by the ends of their names."""


class Handling(NamedTuple):
    """Seconds outside of operators per row that comes in, and per row that goes out."""

    row_in: float
    row_out: float

    def rest(self, step: StepNote) -> float:
        """Seconds of a step that are neither work in operators nor handling."""
        return step.overhead - self.row_in * rows_in(step) - self.row_out * rows_out(step)


NO_HANDLING: Final = Handling(0.0, 0.0)


def rows_in(step: StepNote) -> int:
    """Rows that the queries of a step read."""
    return sum(run.rows_in for name, run in step.runs if name.endswith(SUFFIXES[0]))


def rows_out(step: StepNote) -> int:
    """Rows that the queries of a step wrote."""
    return sum(run.rows_out for name, run in step.runs if name.endswith(SUFFIXES[-1]))


def rows_per_train(steps: Sequence[StepNote]) -> float:
    """Median number of rows that a query reads in a step."""
    return float(np.median([rows_in(step) / step.members for step in steps])) if steps else 0.0


def fit_handling(steps: Sequence[StepNote]) -> Handling:
    """Least squares of the time of steps outside of operators on (1, rows in, rows out); neither slope is below 0.

    Without it the time to write the rows would count as overhead. Then longer trains would seem to have more overhead,
    and trains that are sized by the overhead would become longer still. It needs steps over short and over long trains.
    """
    rows = np.array([(1.0, rows_in(step), rows_out(step)) for step in steps])
    seconds = np.array([step.overhead for step in steps])
    # Two slopes: if the best fit is not allowed, the best allowed one has one of them, or both, at 0.
    fits = [_fit(rows * (1.0, *used), seconds) for used in product((1.0, 0.0), repeat=2)]
    _, best = min((fit for fit in fits if min(fit[1][1:]) >= 0.0), key=lambda fit: fit[0])
    return Handling(float(best[1]), float(best[2]))


def _fit(rows: NDArray[np.float64], seconds: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """(remaining sum of squares, coefficients); the coefficient of a column of zeros is 0."""
    scale = np.maximum(rows.max(axis=0), 1.0)
    found = np.linalg.lstsq(rows / scale, seconds, rcond=None)[0] / scale
    return float(np.sum((seconds - rows @ found) ** 2)), found
