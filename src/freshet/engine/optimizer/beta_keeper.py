"""The observer that finds beta of FAS-MCQ(beta) while queries run (FAS §5.2)."""

from __future__ import annotations

import math

from freshet.engine.board import DROPPED
from freshet.engine.engine import Engine
from freshet.engine.events import Began, Event
from freshet.engine.metering import waiting_for
from freshet.model.promises.balance import BalanceBound
from freshet.policies import FreshnessAware, Policy
from freshet.quality.optimizer.beta import BetaFinder
from freshet.quality.snapshots import BalanceSnapshot


class BetaKeeper:
    """Looks at all outputs together at even intervals, and sets the beta of a policy.

    Args:
        engine: Whose meters it reads.
        bound: What should be kept.
        policy: Its beta is set.
        every: Seconds between looks.
    """

    def __init__(self, engine: Engine, bound: BalanceBound, policy: FreshnessAware, every: float) -> None:
        self.finder, self.policy = BetaFinder(bound), policy
        self._engine, self._every = engine, every
        self._due = -math.inf
        self._before: tuple[float, int, float, float] = (0.0, 0, 0.0, 0.0)
        policy.beta = self.finder.beta

    def tell(self, event: Event) -> None:
        """Something happened."""
        if isinstance(event, Began):
            self._due, self._before = event.now + self._every, (event.now, 0, 0.0, 0.0)
        elif event.now >= self._due > -math.inf:
            self._due = event.now + self._every
            beta = self.finder.look(self._observed(event.now))
            if beta != self.policy.beta:
                self.policy.beta = beta

    def _observed(self, now: float) -> float | None:
        """The figure since the last look: mean response time, or mean freshness."""
        (then, count, response, fresh), queries = self._before, 0
        seen = [now, 0, 0.0, 0.0]
        for state in self._engine.board.queries:
            meter = self._engine.meters.queries.get(state.name)
            if state.reason == DROPPED or meter is None:
                continue
            self._engine.meters.wait(state.name, waiting_for(state, self._engine.board, self._engine.log))
            counts, queries = meter.response.seen(), queries + 1
            seen[1] += counts.count
            seen[2] += counts.sum
            seen[3] += meter.freshness(now) * max(0.0, now - meter.start)
        self._before = (now, int(seen[1]), seen[2], seen[3])
        if self.finder.bound.measure == "response":
            answers = seen[1] - count
            return (seen[2] - response) / answers if answers > 0 else None
        return min(1.0, max(0.0, (seen[3] - fresh) / queries / (now - then))) if queries and now > then else None

    def take_over(self, policy: Policy) -> None:
        """Another policy runs from now on; it gets the present beta if it has one."""
        if isinstance(policy, FreshnessAware):
            self.policy, policy.beta = policy, self.finder.beta

    def snapshot(self) -> BalanceSnapshot:
        """The present values, for reports."""
        finder = self.finder
        return {
            "bound": finder.bound.text(),
            "observed": finder.observed,
            "beta": finder.beta,
            "looks": finder.looks,
        }
