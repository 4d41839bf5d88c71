"""Freshness-aware scheduling of multiple continuous queries."""

from __future__ import annotations

import math
from typing import ClassVar, Final

from freshet.model import UserError, View
from freshet.policies.ratio.base import RatioPolicy
from freshet.policies.ratio.steps import StepChooser


class FreshnessAware(RatioPolicy):
    """FAS-MCQ(beta): serves the query that keeps the other outputs stale for the shortest time (FAS §4-5).

    If N tuples wait, the probability that one of them matches is P = 1 - (1 - S)^N, and processing them takes N C_avg.
    The priority is P / (N C_avg) (Eq. 11), times the weight of the query (Eq. 12), with N^beta in place of N
    (Eq. 15).

    Args:
        beta: In [0, 1]. 1: best freshness (the paper's FAS-MCQ). 0: best response time, exactly the order of
            :class:`~freshet.policies.ratio.rb_mcq.RateBased`. May be set while running.
        rows: Tuples to take from a queue at once; None takes all that wait.
        weighted: Whether priorities are multiplied by the weights of the queries.
        steps: Chooses the step from the ranking.

    A query with a long queue waits for one with a short queue, although the two are otherwise alike:

    >>> from freshet.simulation.executor import Profile
    >>> from freshet.simulation.world import SimulatedQuery, World
    >>> import numpy as np
    >>> burst, calm = (SimulatedQuery.straight(f"q_{stream}", stream, (Profile(1.0),)) for stream in ("burst", "calm"))
    >>> world = World({"burst": np.zeros(3), "calm": np.zeros(1)}, [burst, calm], FreshnessAware())
    >>> world.run()
    >>> [query["freshness"] for query in world.engine.snapshot()["queries"].values()]
    [0.0, 0.75]
    """

    name: ClassVar[str] = "fas-mcq"
    rule = "likeliest to make an output fresh, per second"

    def __init__(
        self,
        beta: float = 1.0,
        rows: int | None = None,
        *,
        weighted: bool = True,
        steps: StepChooser | None = None,
    ) -> None:
        super().__init__(rows, weighted=weighted, steps=steps)
        self.beta = beta

    @property
    def beta(self) -> float:
        """How much the number of waiting tuples counts."""
        return self._beta

    @beta.setter
    def beta(self, beta: float) -> None:
        if not 0.0 <= beta <= 1.0:
            raise UserError(f"fas-mcq: beta {beta} is outside [0, 1] (0: best response time, 1: best freshness)")
        self._beta = beta
        self.rerank()

    def priority(self, view: View, operator: int) -> float:
        """The weight times (1 - (1 - S)^n) / (n C_avg) with n = N^beta."""
        selectivity, no_match, cost, weight = self.terms(view, operator)
        waiting: float = view.operators[operator].pending
        if self._beta != 1.0:
            waiting = waiting**self._beta
        # One tuple matches with probability S. This is exact, so that beta = 0 ties where the rate-based order ties.
        stale = selectivity if waiting == 1 else -math.expm1(waiting * no_match)
        return weight * stale / (waiting * cost)

    def weighs_in_all(self, view: View) -> dict[str, float]:
        """Its beta, if that is not 1, and what the steps consider."""
        figures = super().weighs_in_all(view)
        return figures if self._beta == 1.0 else {"beta": self._beta, **figures}


POLICIES: Final = (FreshnessAware,)
