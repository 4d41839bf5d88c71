"""How far off what a sample says may be (RT §5.1, Fig. 8-9)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from freshet.quality.periodic.plan_time import PlanTime


def selectivity_error(selectivity: float, sampled: float, rows: float) -> float:
    """Standard deviation of the selectivity that a simple random sample without replacement gives:
    sqrt(s (1 - s) / m (N - m) / (N - 1)) (RT §4.2, Fig. 8).

    It rises with the selectivity up to 0.5 only, and falls beyond; the relative error falls throughout.

    Args:
        selectivity: The true one, at most 1.
        sampled: Size m of the sample.
        rows: Size N of what is sampled.

    >>> round(selectivity_error(0.2, 100, 1000), 3), selectivity_error(0.2, 1000, 1000)
    (0.038, 0.0)
    """
    if sampled >= rows or rows <= 1.0:
        return 0.0
    return math.sqrt(spread(selectivity) / max(sampled, 1.0) * (rows - sampled) / (rows - 1.0))


def spread(selectivity: float) -> float:
    """Variance of what one tuple gives out: s (1 - s). Above 1, where tuples have several matches, that of Poisson."""
    return selectivity * (1.0 - selectivity) if selectivity <= 1.0 else selectivity


def time_error(plan: PlanTime, rows: Mapping[str, float], samples: Mapping[str, Sequence[float]]) -> float:
    """Standard deviation of the time that a plan is expected to take, in seconds, from those of its selectivities. The
    samples of its operators are independent.

    Args:
        plan: With the selectivities that were estimated.
        rows: Tuples of each stream.
        samples: Number of sampled tuples that entered each operator, by port; operators that are not named were not
            sampled.
    """
    entering, slopes = plan.flows(rows), plan.slopes(rows)
    errors = (
        slopes[step.name]
        * selectivity_error(step.selectivity, step.chances(samples[step.name]), step.chances(entering[step.name]))
        for step in plan.steps
        if step.name in samples
    )
    return math.sqrt(math.fsum(error * error for error in errors))
