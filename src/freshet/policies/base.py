"""What every policy is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from freshet.model import NOTHING, Decision, InstanceView, View
from freshet.policies.outcome import InstanceOutcome
from freshet.policies.reason import FEW, Candidate, Reason, candidates


class Policy(ABC):
    """Decides what runs next. Subclass it, give it a ``name`` and a ``decide``, and register it.

    The notices are for policies that keep an order of their own, so that a decision need not look at every queue; the
    others ignore them.

    Whoever wants to know the reason asks :meth:`why` right after a decision. A policy explains itself by ``rule``,
    :meth:`weighs`, :meth:`weighs_in_all` and :meth:`order`; these change nothing that a later decision depends on.

    >>> from freshet.model import NOTHING, Step, push_through
    >>> class Newest(Policy):
    ...     name = "newest"
    ...     def decide(self, view):
    ...         ready = list(view.ready)
    ...         return Decision.run(Step(push_through(view, ready[-1]))) if ready else NOTHING
    """

    name: ClassVar[str]
    preempts: ClassVar[bool] = False
    """Whether it is asked while a unit runs: see :meth:`running`."""
    keeps_curves: ClassVar[bool] = False
    """Whether it goes by the latency curves of queries."""
    rule: str = ""
    """What it prefers, in words."""

    def arrived(self, view: View, operators: Iterable[int]) -> None:  # noqa: B027 (optional notice)
        """Tuples came into the queues of these operators."""

    def completed(self, view: View, operators: Iterable[int]) -> None:  # noqa: B027 (optional notice)
        """These operators ran: their queues, costs and selectivities may have changed."""

    def changed(self, view: View, query: int) -> None:  # noqa: B027 (optional notice)
        """A query was added, dropped, quarantined, held or resumed, or its promises changed.

        The numbers of a dropped query and of its operators are given to others later: forget what you keep by them.
        """

    def released(self, view: View, instances: Sequence[InstanceView]) -> None:  # noqa: B027 (optional notice)
        """Instances of periodic queries were released."""

    def answered(self, view: View, outcome: InstanceOutcome) -> None:  # noqa: B027 (optional notice)
        """An instance of a periodic query was answered or abandoned."""

    @abstractmethod
    def decide(self, view: View) -> Decision:
        """What to run next; :data:`~freshet.model.NOTHING` if nothing is worth running now."""

    def running(self, view: View) -> Decision:
        """What to do while every worker runs a unit, for a policy that :attr:`preempts`. It is asked when tuples have
        come, and at the time at which its latest decision wanted to be asked again. It may end the unit, and leave
        tuples behind."""
        return NOTHING

    def why(self, view: View, decision: Decision) -> Reason:
        """The reason for its latest decision; the view must not have changed since."""
        chosen, others = candidates(view, decision, self.order(view))
        first, passed_over = (
            tuple(Candidate(number, _names(view, number), self.weighs(view, number)) for number in numbers)
            for numbers in (chosen[:FEW], others)
        )
        figures = self.weighs_in_all(view)
        return Reason(self.name, self.rule, figures, len(chosen), len(view.ready), first, passed_over)

    def weighs(self, view: View, operator: int) -> dict[str, float]:
        """What it knows of a waiting operator; names of seconds end in ``_s``."""
        each = view.operators[operator]
        return {"waiting": each.pending, "oldest_s": view.now - each.head_arrival}

    def weighs_in_all(self, view: View) -> dict[str, float]:
        """What it also considers, whichever operator runs."""
        return {"overhead_s": view.overhead()}

    def order(self, view: View) -> Iterable[int]:
        """The operators that could have run, best first if it knows an order; by default as they became ready."""
        return view.ready


def _names(view: View, operator: int) -> tuple[str, ...]:
    return tuple(view.queries[query].name for query in view.operators[operator].queries)
