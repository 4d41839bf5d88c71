"""Rate-based scheduling of multiple continuous queries."""

from __future__ import annotations

from typing import ClassVar, Final

from freshet.model import View
from freshet.policies.ratio.base import RatioPolicy


class RateBased(RatioPolicy):
    """RB-MCQ: serves the query with the highest output rate, GR = S / C_avg (FAS §5.1, Eq. 13).

    Choose it if the mean response time of output tuples matters more than how long outputs stay stale. The rate is
    multiplied by the weight of the query. All weights are 1 by default, and then this is Eq. 13.

    >>> from freshet.simulation.executor import Profile
    >>> from freshet.simulation.world import SimulatedQuery, World
    >>> import numpy as np
    >>> costs = {"slow": 2.0, "fast": 1.0}
    >>> slow, fast = (SimulatedQuery.straight(name, "s", [Profile(cost)]) for name, cost in costs.items())
    >>> world = World({"s": np.zeros(1)}, [slow, fast], RateBased())
    >>> world.run()
    >>> [round(query["response"]["mean_s"], 3) for query in world.engine.snapshot()["queries"].values()]
    [3.0, 1.0]
    """

    name: ClassVar[str] = "rb-mcq"
    rule = "highest output rate"

    def priority(self, view: View, operator: int) -> float:
        """The weight times S / C_avg, over the operator and all operators behind it."""
        terms = self.terms(view, operator)
        return terms.weight * terms.selectivity / terms.cost


POLICIES: Final = (RateBased,)
