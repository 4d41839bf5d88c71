"""Everything at once: one superbox of all that waits."""

from __future__ import annotations

from typing import ClassVar, Final

from freshet.model import NOTHING, Decision, Step, View
from freshet.policies.base import Policy
from freshet.policies.pushing import PushThrough


class Everything(Policy):
    """Runs all waiting tuples through all queries in one step.

    The right choice while the overhead of a step outweighs its work, and the baseline to beat where it
    does not: there the cheapest query waits for the dearest one.
    """

    name: ClassVar[str] = "everything"

    def __init__(self) -> None:
        self._through = PushThrough()

    def changed(self, view: View, query: int) -> None:
        """A query changed: maybe what reads a shared operator, too."""
        self._through.forget()

    def decide(self, view: View) -> Decision:
        """One step with every ready operator and all behind them."""
        return Decision.run(Step(self._through.together(view, view.ready))) if view.ready else NOTHING


POLICIES: Final = (Everything,)
