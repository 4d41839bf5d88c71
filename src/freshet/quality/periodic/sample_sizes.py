"""How much to sample: the same share of everything, or where it tells most about the time (RT §4.2, §5.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from freshet.quality.periodic.plan_time import PlanTime
from freshet.quality.periodic.sampling_error import spread

Sampling = Literal["fixed", "dynamic", "off"]
"""How samples are sized: a fixed share of each window, where they tell most, or there are none and selectivities are
those of earlier instances."""
FIXED: Final = 0.1
"""Share of each window that the fixed sampler takes (RT Table 2)."""
BUDGET: Final = 0.05
"""Share of an instance's time that the dynamic sampler takes at most (RT §5.2.3)."""
ENOUGH: Final = 0.02
"""Relative error of the time at which a sample is large enough."""
_OPEN: Final = 0.02
"""Selectivities near 0 or 1 count as this far from them: a few tuples cannot show that nothing passes."""


@dataclass(frozen=True, slots=True)
class SampleAim:
    """An operator as the dynamic sampler sees it.

    Args:
        slope: By how much the query's time rises with its selectivity, |dT/ds|, in seconds.
        selectivity: As it is known so far, per tuple.
        price: Seconds for each tuple that is sampled.
    """

    slope: float
    selectivity: float
    price: float

    @property
    def size(self) -> float:
        """Its size up to a factor that is the same for all operators: |dT/ds| sqrt(s (1 - s) / price). It gives the
        time the least variance that a sample of its price can."""
        return abs(self.slope) * self.deviation / math.sqrt(self.price) if self.price > 0.0 else 0.0

    @property
    def deviation(self) -> float:
        """Standard deviation of what one tuple gives out."""
        share = self.selectivity
        return math.sqrt(spread(min(max(share, _OPEN), 1.0 - _OPEN) if share <= 1.0 else share))


def aims(plan: PlanTime, rows: Mapping[str, float]) -> dict[str, SampleAim]:
    """What the sampler knows of each operator, all selectivities per tuple.

    >>> from freshet.quality.periodic import OperatorCost, PlanStep
    >>> cost = lambda us: OperatorCost.given([us * 1e-6], 0.0)
    >>> plan = PlanTime((
    ...     PlanStep("select", ("s",), cost(0.2), 0.2), PlanStep("join", ("select",), cost(5.0), 0.2),
    ...     PlanStep("sum", ("join",), cost(0.4), 0.2),
    ... ))
    >>> found = aims(plan, {"s": 1000})
    >>> round(found["select"].size / found["join"].size, 1)
    317.5
    """
    entering, slopes, parts = plan.flows(rows), plan.slopes(rows), plan.parts(rows)
    found = {}
    for step in plan.steps:
        tuples, chances = sum(entering[step.name]), step.chances(entering[step.name])
        if tuples > 0.0 and chances > 0.0:
            each = chances / tuples
            found[step.name] = SampleAim(slopes[step.name] / each, step.selectivity * each, parts[step.name] / tuples)
    return found


def dynamic_sizes(
    plan: PlanTime, rows: Mapping[str, float], budget: float = BUDGET, enough: float = ENOUGH
) -> dict[str, int]:
    """Number of tuples to sample at each operator; operators that are not named need none.

    A sample takes at most a share of the instance's time, and is no larger than a relative error of the time asks for.
    An operator gets at most what passes the samples of those before it.

    Args:
        plan: With costs and selectivities as they are known so far.
        rows: Tuples of each stream.
        budget: Largest share of the time.
        enough: Relative error of the time that is small enough.
    """
    known = aims(plan, rows)
    weights = {name: aim.size for name, aim in known.items() if aim.size > 0.0}
    if not weights:
        return {}
    seconds = plan.seconds(rows)
    price = math.fsum(weights[name] * known[name].price for name in weights)
    variance = math.fsum((known[name].slope * known[name].deviation) ** 2 / weights[name] for name in weights)
    factor = min(budget * (seconds - plan.overhead) / price, variance / (enough * seconds) ** 2)
    return _possible(plan, rows, {name: factor * weight for name, weight in weights.items()})


def fixed_sizes(plan: PlanTime, rows: Mapping[str, float], share: float = FIXED) -> dict[str, int]:
    """The same share of all that enters each operator (RT §4.2)."""
    entering = plan.flows({name: count * share for name, count in rows.items()})
    return {name: math.ceil(sum(each)) for name, each in entering.items()}


def _possible(plan: PlanTime, rows: Mapping[str, float], wanted: Mapping[str, float]) -> dict[str, int]:
    """Sizes that can be taken: an operator sees at most what passed the samples before it."""
    comes, sizes = dict(rows), {}
    for step in plan.steps:
        entering = [comes.get(name, 0.0) for name in step.inputs]
        size = math.ceil(min(wanted.get(step.name, 0.0), sum(entering)))
        share = size / sum(entering) if size else 0.0
        comes[step.name] = step.output([each * share for each in entering])
        if size:
            sizes[step.name] = size
    return sizes
