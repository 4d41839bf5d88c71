"""Ageing: whoever has waited too long comes first, whatever the policy prefers (FAS §4.4)."""

from __future__ import annotations

from freshet.model import Decision, Step, View, duration_text, push_through
from freshet.policies.around import Around
from freshet.policies.base import Policy
from freshet.policies.reason import Reason


class Ageing(Around):
    """Another policy, in which no tuple waits for ever: an operator whose oldest tuple has waited for ``limit`` seconds
    runs next, the oldest first, with everything behind it.

    So a tuple waits for at most the limit, the steps that are running then, and one step for each query that had an
    older tuple by then. Steps take everything that waits, up to the maximum of a train.

    Args:
        inner: Decides as long as nobody has waited too long.
        limit: Seconds.

    >>> from freshet.policies.registry import create
    >>> from freshet.simulation.view import RecordView
    >>> Ageing(create("fas-mcq"), 5.0).decide(RecordView()).steps
    ()
    """

    name = "ageing"

    def __init__(self, inner: Policy, limit: float) -> None:
        super().__init__(inner)
        self.limit = limit
        self.rule = f"has waited for more than {duration_text(limit)}"
        self._by_age = False

    def decide(self, view: View) -> Decision:
        """The oldest of those that have waited too long; what the policy decides if there is none."""
        oldest = min(view.ready, key=lambda number: (view.operators[number].head_arrival, number), default=None)
        self._by_age = oldest is not None and view.now - view.operators[oldest].head_arrival >= self.limit
        if oldest is None or not self._by_age:
            return self.inner.decide(view)
        return Decision.run(Step(push_through(view, oldest)))

    def why(self, view: View, decision: Decision) -> Reason:
        """Its own reason if age decided, else that of the policy."""
        return Policy.why(self, view, decision) if self._by_age else self.inner.why(view, decision)


def aged(policy: Policy, limit: float | None) -> Policy:
    """A policy with a limit of age, if there is one."""
    return policy if limit is None else Ageing(policy, limit)
