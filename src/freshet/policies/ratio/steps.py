"""Step choosers: from a ranking of operators to the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from freshet.model import NOTHING, Decision, View

if TYPE_CHECKING:
    from freshet.policies.ratio.base import RatioPolicy


class StepChooser(Protocol):
    """Makes the next step of a ratio policy from its queue."""

    def choose(self, policy: RatioPolicy, view: View) -> Decision:
        """The step; none if nothing in the policy's queue is ready."""

    def weighs(self, view: View) -> dict[str, float]:
        """What its latest choice considered besides the ranking."""


class OneQuery:
    """The best query alone, as in the papers: right if a step itself costs nothing."""

    def choose(self, policy: RatioPolicy, view: View) -> Decision:
        ready, queue = view.ready, policy.queue
        while (best := queue.best()) is not None:
            number = best[0]
            if number in ready:
                return policy.serve(view, number)
            # It runs or is held; a notice will bring it back.
            queue.remove(number)
        return NOTHING

    def weighs(self, view: View) -> dict[str, float]:
        return {"overhead_s": view.overhead()}
