"""Everything at once: one superbox of all that waits."""

from __future__ import annotations

from typing import ClassVar, Final

from freshet.model import NOTHING, Decision, Step, View
from freshet.policies.base import Policy
from freshet.policies.pushing import PushThrough


class Everything(Policy):
    """Runs all waiting tuples through all queries in one step.

    It is the right choice while the overhead of a step outweighs its work. Otherwise it is the baseline to beat: the
    cheapest query waits for the most expensive one.
    """

    name: ClassVar[str] = "everything"
    rule = "all that waits"

    def __init__(self) -> None:
        self._through = PushThrough()

    def changed(self, view: View, query: int) -> None:
        """A query changed, and the readers of a shared operator may have changed with it."""
        self._through.forget()

    def decide(self, view: View) -> Decision:
        """One step with every ready operator and all operators behind them."""
        return Decision.run(Step(self._through.together(view, view.ready))) if view.ready else NOTHING


POLICIES: Final = (Everything,)
