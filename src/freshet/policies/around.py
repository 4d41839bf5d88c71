"""Policies around another one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from freshet.model import Decision, InstanceView, View
from freshet.policies.base import Policy
from freshet.policies.outcome import InstanceOutcome
from freshet.policies.reason import Reason


class Around(Policy):
    """Passes every notice and question on to another policy; subclass it to measure, charge or change some of them.

    Args:
        inner: The policy that decides.

    >>> from freshet.policies.everything import Everything
    >>> from freshet.simulation.view import RecordView
    >>> Around(Everything()).decide(RecordView()).steps
    ()
    """

    name = "around"

    def __init__(self, inner: Policy) -> None:
        self.inner = inner

    @property
    def preempts(self) -> bool:  # type: ignore[override]
        return self.inner.preempts

    def running(self, view: View) -> Decision:
        return self.inner.running(view)

    def arrived(self, view: View, operators: Iterable[int]) -> None:
        self.inner.arrived(view, operators)

    def completed(self, view: View, operators: Iterable[int]) -> None:
        self.inner.completed(view, operators)

    def changed(self, view: View, query: int) -> None:
        self.inner.changed(view, query)

    def released(self, view: View, instances: Sequence[InstanceView]) -> None:
        self.inner.released(view, instances)

    def answered(self, view: View, outcome: InstanceOutcome) -> None:
        self.inner.answered(view, outcome)

    def decide(self, view: View) -> Decision:
        return self.inner.decide(view)

    def why(self, view: View, decision: Decision) -> Reason:
        return self.inner.why(view, decision)
